// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// control is a real API server with its etcd, and nothing else of Kubernetes.
type control struct {
	dir    string
	config *rest.Config
	etcd   *process
	api    *process
}

// process is a child that must not outlive this one.
type process struct {
	name string
	cmd  *exec.Cmd
	gone chan struct{}
	err  error
}

// launch starts a program whose output goes into a file.
func launch(dir, name string, env []string, argv ...string) (*process, error) {
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	defer func() { _ = log.Close() }()
	p := &process{name: name, gone: make(chan struct{})}
	// It ends by stop and not with a context, which would not let it say good-bye.
	p.cmd = exec.CommandContext(context.Background(), argv[0], argv[1:]...)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = log, log, append(os.Environ(), env...)
	// Ctrl-C goes to the program that started the child, not to it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.gone)
	}()
	return p, nil
}

const stopTimeout = 20 * time.Second

func (p *process) stop() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.gone:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.gone
	}
}

var errEnded = errors.New("ended by itself")

// alive is nil while the process runs.
func (p *process) alive() error {
	select {
	case <-p.gone:
		return errors.Join(fmt.Errorf("%s %w, see its log in out/scale", p.name, errEnded), p.err)
	default:
		return nil
	}
}

// programPath finds a program that the lab was made of: in the lab, or in the cache from which it takes it.
func programPath(name string) (string, error) {
	var tried []string
	for _, dir := range []string{
		os.Getenv("KUBEBUILDER_ASSETS"), filepath.Join(orElse(os.Getenv("MFG_LAB_DIR"), "/var/lib/mfg-lab"), "bin"),
	} {
		if path := filepath.Join(dir, name); dir != "" && isFile(path) {
			return path, nil
		}
		tried = append(tried, dir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	pattern := filepath.Join(orElse(os.Getenv("MFG_CACHE"), filepath.Join(home, ".cache", "mfg")), "*", name)
	found, err := filepath.Glob(pattern)
	if err != nil {
		return "", fmt.Errorf("look for %s: %w", name, err)
	}
	found = slices.DeleteFunc(found, func(path string) bool { return !isFile(path) })
	if len(found) == 0 {
		return "", fmt.Errorf("find %s: it is neither in %v nor at %s; `make lab-up` compiles it once", name, tried, pattern)
	}
	return slices.MaxFunc(found, byAge), nil
}

func byAge(a, b string) int {
	return modified(a).Compare(modified(b))
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// freePorts finds ports that nobody listens on now.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer func() { _ = l.Close() }()
		if addr, ok := l.Addr().(*net.TCPAddr); ok {
			ports = append(ports, addr.Port)
		}
	}
	return ports, nil
}

// lavish has what is not measured, and shares the processors with what is, spend memory and not time on its garbage.
var lavish = []string{"GOGC=400"}

// elsewhere is the niceness of the control plane: it has machines of its own wherever a thousand groups are.
const elsewhere = "5"

// startControl starts etcd and the API server in a directory and waits until it is ready.
func startControl(ctx context.Context, dir string) (*control, error) {
	etcd, err := programPath("etcd")
	if err != nil {
		return nil, err
	}
	apiserver, err := programPath("kube-apiserver")
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	c := &control{dir: dir}
	token := rand.Text()
	if err := c.credentials(token); err != nil {
		return nil, err
	}
	at := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }
	if c.etcd, err = launch(dir, "etcd", lavish, "nice", "-n", elsewhere, etcd, "--data-dir="+filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--quota-backend-bytes=4294967296", "--listen-client-urls="+at(ports[0]), "--advertise-client-urls="+at(ports[0]),
		"--listen-peer-urls="+at(ports[1]), "--initial-advertise-peer-urls="+at(ports[1]), "--initial-cluster=default="+at(ports[1])); err != nil {
		return nil, err
	}
	key := filepath.Join(dir, "sa.key")
	if c.api, err = launch(dir, "kube-apiserver", lavish, "nice", "-n", elsewhere, apiserver, "--etcd-servers="+at(ports[0]), "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", ports[2]), "--cert-dir="+filepath.Join(dir, "api"), "--token-auth-file="+filepath.Join(dir, "tokens.csv"),
		"--authorization-mode=AlwaysAllow", "--service-cluster-ip-range=10.112.0.0/12", "--disable-admission-plugins=ServiceAccount",
		"--service-account-issuer=https://scale", "--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--enable-priority-and-fairness=false", "--profiling=false"); err != nil {
		return c, err
	}
	c.config = &rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", ports[2]), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		QPS: -1,
	}
	return c, c.awaitReady(ctx)
}

// credentials writes an administrator's token and the key of service accounts, which nobody uses here.
func (c *control) credentials(token string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("make key: %w", err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	err = errors.Join(
		os.WriteFile(filepath.Join(c.dir, "sa.key"), block, 0o600),
		os.WriteFile(filepath.Join(c.dir, "tokens.csv"), []byte(token+",scale,scale,system:masters\n"), 0o600),
	)
	if err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	return nil
}

// kubeconfig writes the file by which the operator finds the API server.
func (c *control) kubeconfig() (string, error) {
	conf := clientcmdapi.NewConfig()
	conf.Clusters["scale"] = &clientcmdapi.Cluster{Server: c.config.Host, InsecureSkipTLSVerify: true}
	conf.AuthInfos["scale"] = &clientcmdapi.AuthInfo{Token: c.config.BearerToken}
	conf.Contexts["scale"] = &clientcmdapi.Context{Cluster: "scale", AuthInfo: "scale"}
	conf.CurrentContext = "scale"
	path := filepath.Join(c.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*conf, path); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	return path, nil
}

func (c *control) awaitReady(ctx context.Context) error {
	return poll(ctx, upTo(3*time.Minute), "the API server", func(ctx context.Context) error {
		if err := errors.Join(c.etcd.alive(), c.api.alive()); err != nil {
			return err
		}
		_, err := c.get(ctx, "/readyz")
		return err
	})
}

// get reads a path of the API server.
func (c *control) get(ctx context.Context, path string) (string, error) {
	conf := rest.CopyConfig(c.config)
	transport, err := rest.HTTPClientFor(conf)
	if err != nil {
		return "", fmt.Errorf("reach the API server: %w", err)
	}
	return fetch(ctx, transport, c.config.Host+path)
}

func (c *control) stop() {
	if c == nil {
		return
	}
	c.api.stop()
	c.etcd.stop()
}

// writes counts the requests that changed something, by resource. Leases stand apart: they only say who leads and who lives
// every few seconds, whatever there is to do.
func (c *control) writes(ctx context.Context) (map[string]float64, error) {
	text, err := c.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	return countWrites(text), nil
}

func countWrites(metrics string) map[string]float64 {
	counts := map[string]float64{}
	for _, m := range parseMetrics(metrics, "apiserver_request_total") {
		switch strings.ToUpper(m.labels["verb"]) {
		case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, "APPLY", "DELETECOLLECTION":
			name := m.labels["resource"]
			if sub := m.labels["subresource"]; sub != "" {
				name += "/" + sub
			}
			counts[name] += m.value
		}
	}
	return counts
}
