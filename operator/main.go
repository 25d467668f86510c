// SPDX-License-Identifier: Apache-2.0

// Command operator manages groups of MySQL sites: see docs/failover.md for what it decides.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/logpipe"
	"github.com/mysql-mfg/mfg/operator/access"
	"github.com/mysql-mfg/mfg/operator/archiving"
	"github.com/mysql-mfg/mfg/operator/backups"
	cacheloop "github.com/mysql-mfg/mfg/operator/cache/loop"
	"github.com/mysql-mfg/mfg/operator/cacheobjects"
	"github.com/mysql-mfg/mfg/operator/controller"
	"github.com/mysql-mfg/mfg/operator/leading"
	"github.com/mysql-mfg/mfg/operator/limits"
	"github.com/mysql-mfg/mfg/operator/lost"
	"github.com/mysql-mfg/mfg/operator/monitor"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
	"github.com/mysql-mfg/mfg/operator/server"
	"github.com/mysql-mfg/mfg/operator/signing"
	"github.com/mysql-mfg/mfg/operator/work"
)

// settings are the command line.
type settings struct {
	leaderElect       bool
	hotStandby        bool
	metricsAddr       string
	probeAddr         string
	auxiliaryAddr     string
	auxiliaryURL      string
	escrowAddr        string
	escrowURL         string
	escrowTLSDir      string
	escrowOwn         bool
	sidecarImage      string
	sidecarPullPolicy string
	backupImage       string
	backupPullPolicy  string
	backupsAtOnce     int
	watchNamespaces   string
	statusAccess      bool
	logLevel          string
	logFormat         string
	namespace         string
	// holder is the name of this process for people.
	holder        string
	allowedImages string
	allowedNames  string
	assignsIDs    bool
	tracing       string
	upgrades      upgradeSettings
	// notes say which settings cannot be used, and what is done instead.
	notes []string
}

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("operator", flag.ContinueOnError)
	f.BoolVar(&s.leaderElect, "leader-elect", true, "lead only with the Lease; two operators at once are never safe without")
	f.BoolVar(&s.hotStandby, "hot-standby", false, "another replica stands by: label the pod that leads, for the Service, and answer sidecars only while the Lease was renewed lately")
	f.StringVar(&s.metricsAddr, "metrics-bind-address", ":8080", "address of /metrics; 0 switches it off")
	f.StringVar(&s.probeAddr, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	f.StringVar(&s.auxiliaryAddr, "auxiliary-bind-address", ":8082", "address of /active-site, /status and /ws/status")
	f.StringVar(&s.auxiliaryURL, "auxiliary-url", "", "URL under which sidecars reach the auxiliary address (required)")
	f.StringVar(&s.escrowAddr, "escrow-bind-address", "", "address of /keyring/escrow, TLS only; empty takes no keyrings into escrow")
	f.StringVar(&s.escrowURL, "escrow-url", "", "URL under which sidecars reach the escrow address (https)")
	f.StringVar(&s.escrowTLSDir, "escrow-tls-dir", "/etc/mfg-escrow-tls", "directory with tls.crt and tls.key of the escrow address")
	f.BoolVar(&s.escrowOwn, "escrow-own-certificate", false, "make and renew the certificate of the escrow address, in Secrets of the operator's namespace, instead of reading it from --escrow-tls-dir")
	f.StringVar(&s.sidecarImage, "sidecar-image", "", "image of the sidecar (required)")
	f.StringVar(&s.sidecarPullPolicy, "sidecar-image-pull-policy", "IfNotPresent", "pull policy of the sidecar's image")
	f.StringVar(&s.backupImage, "backup-image", "", "image with the program that makes and verifies backups; empty makes none")
	f.StringVar(&s.backupPullPolicy, "backup-image-pull-policy", "IfNotPresent", "pull policy of that image")
	f.IntVar(&s.backupsAtOnce, "backups-at-once", backups.DefaultAtOnce, "how many backups are made at a time, of all groups together; as many are verified at a time")
	f.StringVar(&s.watchNamespaces, "watch-namespaces", "", "namespaces to look after, comma-separated; empty means all")
	f.BoolVar(&s.statusAccess, "status-authorization", false, "answer /status and /ws/status only to tokens of accounts that may get the groups, and through port-forwards")
	f.StringVar(&s.namespace, "namespace", ownNamespace(), "namespace of the operator, for its Lease and the keys that sign; that of its pod if it is not given")
	f.StringVar(&s.allowedImages, "allowed-images", "", "repositories of images that groups may run, comma-separated; one that ends in / stands for all below it; empty means any")
	f.StringVar(&s.allowedNames, "allowed-dns-suffixes", "", "domains in which groups may publish names, comma-separated; {namespace} stands for that of the group; empty means any")
	f.BoolVar(&s.assignsIDs, "platform-assigns-ids", false, "name no user and no group in pods: the platform assigns them, as OpenShift does")
	f.StringVar(&s.tracing, "tracing-endpoint", "", "URL of a collector of OpenTelemetry that takes a trace of each failover, over HTTP, such as http://collector.monitoring:4318; empty sends none")
	f.StringVar(&s.logLevel, "log-level", "info", "debug, info, warn or error")
	s.upgrades.flags(f)
	f.StringVar(&s.logFormat, "log-format", "json", "json or text")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	s.notes = s.upgrades.settle()
	s.holder = os.Getenv("POD_NAME")
	switch {
	case f.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q: every setting is a flag, see --help", f.Arg(0))
	case s.auxiliaryURL == "":
		return s, fmt.Errorf("--auxiliary-url is required: the URL of Service mfg-auxiliary, port 8082")
	case s.sidecarImage == "":
		return s, fmt.Errorf("--sidecar-image is required")
	case s.backupsAtOnce < 1 || s.backupsAtOnce > backupsAtOnceMax:
		return s, fmt.Errorf("--backups-at-once %d: choose a number from 1 to %d", s.backupsAtOnce, backupsAtOnceMax)
	case s.hotStandby && (!s.leaderElect || s.holder == ""):
		return s, fmt.Errorf("--hot-standby needs --leader-elect, and the name of the pod in the environment variable POD_NAME")
	case s.namespace == "":
		return s, fmt.Errorf("--namespace is required outside of a cluster: where the keys that sign statements are kept")
	}
	return s, s.checkEscrow()
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	// No reader of the log may hold up a failover.
	pipe := logpipe.New(os.Stderr)
	defer pipe.Close()
	log, err := newLog(pipe, s.logLevel, s.logFormat)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	term := &leading.Term{Lease: s.lease()}
	mgr, err := newManager(s, term)
	if err != nil {
		return err
	}
	if err := metrics.Register(ctrlmetrics.Registry); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	if err := wire(mgr, s, log, term); err != nil {
		return err
	}
	for _, note := range s.notes {
		log.Error("a setting cannot be used", "error", note)
	}
	log.Info("starting operator", "version", version())
	return mgr.Start(ctx)
}

// limits are what the installation lets groups ask for.
func (s settings) limits() limits.Limits {
	return limits.Limits{Images: elements(s.allowedImages), DNSSuffixes: elements(s.allowedNames)}
}

// wire makes the parts and connects them. The poll loops and the controller know each other only through their
// interfaces.
func wire(mgr ctrl.Manager, s settings, log *slog.Logger, term *leading.Term) error {
	recorder := events.NewRecorder(mgr.GetEventRecorder("mfg"))
	reach := access.New(mgr.GetClient(), mgr.GetAPIReader())
	board := server.NewBoard()
	register := work.New()
	keys := &signing.Keys{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Namespace: s.namespace}
	troubles := &cacheobjects.Troubles{}
	caches := cacheloop.New(cacheloop.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Access: reach, Troubles: troubles, Events: recorder, Log: log, Lease: s.lease(),
	})
	if err := cacheloop.Index(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index cache pods: %w", err)
	}
	loops := monitor.New(monitor.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Cache: mgr.GetCache(), Access: reach, Keys: keys, Push: client.NewFrugal(nil),
		LongWork: register, Losses: lost.New(lost.Options{Access: reach, Log: log}), Board: board, Events: recorder, Log: log,
		Lease: s.lease(), Caches: caches, Former: term.Former,
	})
	caches.Steady = loops.Steady
	install := render.Install{
		SidecarImage: s.sidecarImage, SidecarPullPolicy: corev1.PullPolicy(s.sidecarPullPolicy), OperatorURL: s.auxiliaryURL, EscrowURL: s.escrowURL, EscrowOwn: s.escrowOwn,
		BackupImage: s.backupImage, BackupPullPolicy: corev1.PullPolicy(s.backupPullPolicy), PlatformAssignsIDs: s.assignsIDs,
	}
	turns, err := newTurns(mgr, s, install)
	if err != nil {
		return err
	}
	turns.Recorder, turns.Log = recorder, log
	own := escrowCertificate(mgr, s, log)
	escrowed := newKeyrings(mgr, s, own)
	reconciler := controller.New(controller.Options{
		Turns: turns, Revision: turns.Revision,
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Facts: factsOf{loops}, Loops: bothLoops{loops, caches, reach}, CacheTroubles: troubles, Access: reach, Work: register, Keys: keys,
		Recorder: recorder, Install: install, Proven: v1alpha1.IsProven(),
		Limits: s.limits(),
		Escrow: escrowed, ReachEscrow: client.Escrow{URL: s.escrowURL}.Reach, Lease: s.lease(), Holder: s.holder,
		OwnAuthorities: authoritiesOf(own), KeepTrust: trustOf(own, escrowed),
	})
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up controller: %w", err)
	}
	copies := backups.New(backups.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Facts: factsOf{loops}, Access: reach, Recorder: recorder, Log: log, Install: install,
		Limits: s.limits(), Lease: s.lease(), AtOnce: s.backupsAtOnce,
	})
	if err := copies.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up backups: %w", err)
	}
	archives := archiving.New(archiving.Options{
		Client: mgr.GetClient(), Facts: factsOf{loops}, Access: reach, Keys: keys, Recorder: recorder, Log: log, Install: install, Lease: s.lease(),
		Ask: client.NewFrugal(nil).ArchiverStatus,
	})
	if err := archiving.Index(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := mgr.Add(archives); err != nil {
		return fmt.Errorf("add what looks after the archives: %w", err)
	}
	turns.Wake = reconciler.Wake
	if err := mgr.Add(turns); err != nil {
		return fmt.Errorf("add what gives groups their turn: %w", err)
	}
	if err := mgr.Add(loops); err != nil {
		return fmt.Errorf("add poll loops: %w", err)
	}
	if err := mgr.Add(caches); err != nil {
		return fmt.Errorf("add what looks after the caches: %w", err)
	}
	if err := mgr.Add(loops.Endings()); err != nil {
		return fmt.Errorf("add what notes how pods end: %w", err)
	}
	if err := mgr.Add(signing.Collector{Keys: keys, Namespaces: elements(s.watchNamespaces), Log: log}); err != nil {
		return fmt.Errorf("add collector of keys: %w", err)
	}
	if err := addTraces(mgr, s, log); err != nil {
		return fmt.Errorf("add what sends traces: %w", err)
	}
	if err := addEscrow(mgr, s, loops, own, log); err != nil {
		return fmt.Errorf("add escrow listener: %w", err)
	}
	speaks, err := addStandby(mgr, s, standbyParts{loops, term, log})
	if err != nil {
		return err
	}
	options := server.Options{Authority: speaks, Source: board, Operator: version(), Log: log, Leading: loops.Leading, Explain: loops.Explain, Cutoff: archives.Cutoff}
	if s.statusAccess {
		access, err := newStatusAccess(mgr)
		if err != nil {
			return err
		}
		options.Authorize = access.may
	}
	auxiliary := server.New(options)
	return mgr.Add(server.Runnable{Server: auxiliary, Addr: s.auxiliaryAddr})
}

func newLog(out io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: use debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: l}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(out, options)), nil
	case "text":
		return slog.New(slog.NewTextHandler(out, options)), nil
	}
	return nil, fmt.Errorf("--log-format %q: use json or text", format)
}

// elements returns the elements of a list with commas.
func elements(list string) []string {
	var out []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// backupsAtOnceMax is far above what one storage takes at a time.
const backupsAtOnceMax = 100

// leaseName is the name of the Lease, in the namespace of the release.
const leaseName = "mfg-operator"

// ownNamespace returns the namespace of the Lease: from the pod, or else from its service account.
func ownNamespace() string {
	if name := os.Getenv("POD_NAMESPACE"); name != "" {
		return name
	}
	raw, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return "" // the manager says what is missing, if it leads by a Lease
	}
	return strings.TrimSpace(string(raw))
}

// lease names the Lease that shows other releases whether this one leads; empty if it leads without one.
func (s settings) lease() string {
	if !s.leaderElect {
		return ""
	}
	return s.namespace + "/" + leaseName
}
