// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Where things lie in the pod. The sidecar knows the same places.
const (
	DataDir     = volumeDir + "/data"
	StateDir    = volumeDir + "/mfg"
	ConfigDir   = "/etc/mfg"
	AccountsDir = "/etc/mfg-accounts"
	TLSDir      = "/etc/mfg-tls"
	ReportDir   = "/etc/mfg-report"
	Socket      = runDir + "/mysqld.sock"

	volumeDir = "/var/lib/mysql"
	runDir    = "/run/mfg"
	binDir    = "/opt/mfg"
	tmpDir    = "/tmp"
)

// Names of the containers.
const (
	ContainerInstall   = "install"
	ContainerBootstrap = v1alpha1.ContainerBootstrap
	ContainerSidecar   = "sidecar"
	ContainerMySQL     = "mysql"
)

// user is the uid and gid of every container, and the owner of the volume: that of the official image.
const user int64 = 999

const (
	// leaveTimeout is how long the end of mysqld waits for the role to move away, shutdownPeriod how long mysqld may take to
	// write its pages back then, sidecarPeriod what the sidecar needs after it. The kubelet counts all of it.
	leaveTimeout           = 10 * time.Second
	shutdownPeriod         = 60 * time.Second
	sidecarPeriod          = 5 * time.Second
	gracePeriod            = int64((leaveTimeout + shutdownPeriod + sidecarPeriod) / time.Second)
	hungKillPeriod   int64 = 5
	defaultContainer       = "kubectl.kubernetes.io/default-container"
)

// reservedPorts are never the near end of a connection that the pod makes. MySQL's admin port lies in the range from which
// the kernel takes those: a sidecar that asked a peer from it once kept mysqld from starting for as long as it asked.
// Kubernetes counts this setting among the safe ones.
var reservedPorts = fmt.Sprintf("%d,%d,%d", wire.PortMySQL, wire.PortSidecar, wire.PortMySQLAdmin)

func podSpec(in Input, site v1alpha1.Site) corev1.PodSpec {
	spec, security := in.Group.Spec, PodSecurity(in.Install)
	security.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_local_reserved_ports", Value: reservedPorts}}
	return corev1.PodSpec{
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		ShareProcessNamespace:         new(true),
		TerminationGracePeriodSeconds: new(gracePeriod),
		SecurityContext:               security,
		ImagePullSecrets:              slices.Clone(spec.ImagePullSecrets),
		PriorityClassName:             spec.PriorityClassName,
		TopologySpreadConstraints:     spread(in),
		NodeSelector:                  site.NodeSelector,
		Affinity:                      affinity(in, site),
		// The default tolerations of Kubernetes stay: a pod on a dead node is marked for deletion after five minutes, and
		// its replacement waits for the volume. Nothing about failover depends on it.
		Tolerations:    append(slices.Clone(site.Tolerations), inactiveToleration(in)),
		InitContainers: slices.Concat([]corev1.Container{install(in)}, loading(in, site), []corev1.Container{bootstrap(in, site), tellsOfArchiver(in, sidecar(in, site))}),
		Containers:     append([]corev1.Container{mysqld(in, site)}, archiver(in, site)...),
		Volumes:        volumes(in, site),
	}
}

// PodSecurity is that of every pod of a group. A platform that assigns users refuses pods that name one, and gives all containers of a pod one
// user, and the volume to its group.
func PodSecurity(install Install) *corev1.PodSecurityContext {
	id := new(user)
	if install.PlatformAssignsIDs {
		id = nil
	}
	return &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: id, RunAsGroup: id, FSGroup: id, FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// spread counts the pods of MySQL of the group and no others.
func spread(in Input) (all []corev1.TopologySpreadConstraint) {
	pods := &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelName: v1alpha1.NameMySQL, v1alpha1.LabelGroup: in.Group.Name}}
	for _, c := range in.Group.Spec.TopologySpreadConstraints {
		all = append(all, corev1.TopologySpreadConstraint{TopologyKey: c.TopologyKey, MaxSkew: max(c.MaxSkew, 1), WhenUnsatisfiable: c.WhenUnsatisfiable, LabelSelector: pods})
	}
	return all
}

// affinity keeps the sites of a group apart where the user says nothing: two sites on one node fail together.
func affinity(in Input, site v1alpha1.Site) *corev1.Affinity {
	if site.Affinity != nil {
		return site.Affinity
	}
	return apart(map[string]string{v1alpha1.LabelName: v1alpha1.NameMySQL, v1alpha1.LabelGroup: in.Group.Name})
}

// apart prefers nodes and zones that have none of these pods.
func apart(pods map[string]string) *corev1.Affinity {
	term := func(key string, weight int32) corev1.WeightedPodAffinityTerm {
		return corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{
			LabelSelector: &metav1.LabelSelector{MatchLabels: pods}, TopologyKey: key,
		}}
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			term(corev1.LabelHostname, 100), term(corev1.LabelTopologyZone, 50),
		},
	}}
}

func containerSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func install(in Input) corev1.Container {
	return corev1.Container{
		Name:            ContainerInstall,
		Image:           in.Install.SidecarImage,
		ImagePullPolicy: in.Install.SidecarPullPolicy,
		Args:            []string{"install", binDir + "/sidecar"},
		Resources:       sidecarResources(in),
		SecurityContext: containerSecurity(),
		VolumeMounts:    []corev1.VolumeMount{{Name: volumeBin, MountPath: binDir}},
	}
}

// bootstrap makes the datadir on the first start. It runs the sidecar's binary in the MySQL image.
func bootstrap(in Input, site v1alpha1.Site) corev1.Container {
	return corev1.Container{
		Name:            ContainerBootstrap,
		Image:           in.Group.Spec.Image,
		ImagePullPolicy: in.Group.Spec.ImagePullPolicy,
		Command:         []string{binDir + "/sidecar", "bootstrap"},
		Env:             append(sidecarEnv(in, site), restoreEnv(in, site)...),
		Resources:       mysqlResources(site),
		SecurityContext: containerSecurity(),
		VolumeMounts: withKeyring(in, site.Name, ContainerBootstrap, withLogs(in, site.Name, withTLS(in,
			corev1.VolumeMount{Name: volumeData, MountPath: volumeDir},
			corev1.VolumeMount{Name: volumeRun, MountPath: runDir},
			corev1.VolumeMount{Name: volumeTmp, MountPath: tmpDir},
			corev1.VolumeMount{Name: volumeBin, MountPath: binDir, ReadOnly: true},
			corev1.VolumeMount{Name: volumeConfig, MountPath: ConfigDir, ReadOnly: true},
			corev1.VolumeMount{Name: volumeAccounts, MountPath: AccountsDir, ReadOnly: true},
		)...)),
	}
}

// sidecar is a native sidecar: it starts before mysqld and ends after it, so that the fence is always there.
func sidecar(in Input, site v1alpha1.Site) corev1.Container {
	return corev1.Container{
		Name:            ContainerSidecar,
		Image:           in.Install.SidecarImage,
		ImagePullPolicy: in.Install.SidecarPullPolicy,
		Args:            []string{"run"},
		RestartPolicy:   new(corev1.ContainerRestartPolicyAlways),
		Env: append(sidecarEnv(in, site),
			corev1.EnvVar{Name: v1alpha1.EnvReportKey, Value: ReportDir + "/" + v1alpha1.ReportKey},
			// In the template, out of reach for somebody who may change only ConfigMaps.
			corev1.EnvVar{Name: v1alpha1.EnvAuthorityKey, Value: in.Anchors[site.Name]},
		),
		Ports: []corev1.ContainerPort{
			{Name: portSidecar, ContainerPort: wire.PortSidecar, Protocol: corev1.ProtocolTCP},
		},
		Resources:       sidecarResources(in),
		SecurityContext: containerSecurity(),
		// mysqld starts only once the fence stands.
		StartupProbe:  probe(wire.PathHealthz, 1, 60),
		LivenessProbe: liveness(wire.PathHealthz),
		VolumeMounts: withKeyring(in, site.Name, ContainerSidecar, withTLS(in,
			corev1.VolumeMount{Name: volumeData, MountPath: volumeDir},
			corev1.VolumeMount{Name: volumeRun, MountPath: runDir},
			corev1.VolumeMount{Name: volumeTmp, MountPath: tmpDir},
			corev1.VolumeMount{Name: volumeConfig, MountPath: ConfigDir, ReadOnly: true},
			// Its own password and no other: the sidecar answers the network.
			corev1.VolumeMount{Name: volumeSidecarAccount, MountPath: AccountsDir, ReadOnly: true},
			corev1.VolumeMount{Name: volumeReport, MountPath: ReportDir, ReadOnly: true},
		)),
	}
}

func mysqld(in Input, site v1alpha1.Site) corev1.Container {
	return corev1.Container{
		Name:            ContainerMySQL,
		Image:           in.Group.Spec.Image,
		ImagePullPolicy: in.Group.Spec.ImagePullPolicy,
		// The sidecar's binary starts mysqld and starts it again in place: docs/decisions/0006.
		Command: []string{
			binDir + "/sidecar", "mysqld", "mysqld", "--defaults-file=" + ConfigDir + "/" + ConfigKeyMyCnf, "--admin-address=$(POD_IP)",
			"--report-host=" + Host(in.Group.Namespace, in.Group.Name, site.Name),
		},
		Env:       mysqldEnv(in, site),
		Lifecycle: &corev1.Lifecycle{PreStop: leaveHook()},
		Ports: []corev1.ContainerPort{
			{Name: portMySQL, ContainerPort: wire.PortMySQL, Protocol: corev1.ProtocolTCP},
			{Name: portAdmin, ContainerPort: wire.PortMySQLAdmin, Protocol: corev1.ProtocolTCP},
		},
		Resources:       mysqlResources(site),
		SecurityContext: containerSecurity(),
		ReadinessProbe:  probe(wire.PathReadyz, 1, 3),
		LivenessProbe:   liveness(wire.PathMysqldHealthz),
		VolumeMounts: withKeyring(in, site.Name, ContainerMySQL, withLogs(in, site.Name, withTLS(in,
			corev1.VolumeMount{Name: volumeData, MountPath: volumeDir},
			corev1.VolumeMount{Name: volumeRun, MountPath: runDir},
			corev1.VolumeMount{Name: volumeTmp, MountPath: tmpDir},
			corev1.VolumeMount{Name: volumeBin, MountPath: binDir, ReadOnly: true},
			corev1.VolumeMount{Name: volumeConfig, MountPath: ConfigDir, ReadOnly: true},
		)...)),
	}
}

func sidecarEnv(in Input, site v1alpha1.Site) []corev1.EnvVar {
	group := in.Group
	env := []corev1.EnvVar{
		{Name: "MFG_NAMESPACE", Value: group.Namespace},
		{Name: "MFG_GROUP", Value: group.Name},
		{Name: "MFG_SITE", Value: site.Name},
		{Name: "MFG_OPERATOR_URL", Value: in.Install.OperatorURL},
		{Name: v1alpha1.EnvPeers, Value: peers(in, site.Name)},
		{Name: v1alpha1.EnvLeaseTimeout, Value: duration(group.Spec.Sidecar.LeaseTimeout, 20*time.Second)},
		{Name: "MFG_PEER_CHECK_INTERVAL", Value: duration(group.Spec.Sidecar.PeerCheckInterval, 2*time.Second)},
		{Name: v1alpha1.EnvFenceTimeout, Value: duration(group.Spec.Sidecar.FenceTimeout, 2*time.Second)},
		leaveEnv(),
		{Name: "MFG_STATE_DIR", Value: StateDir},
		{Name: "MFG_DATADIR", Value: DataDir},
		fieldEnv("POD_IP", "status.podIP"),
		fieldEnv("POD_UID", "metadata.uid"),
	}
	if group.TLSRequired() {
		env = append(env, corev1.EnvVar{Name: v1alpha1.EnvRequireTLS, Value: "true"})
	}
	return append(env, keyringEnv(in, site.Name)...)
}

// mysqldEnv has the keyring's path, so that what starts mysqld again in place can look whether it is still there.
func mysqldEnv(in Input, site v1alpha1.Site) []corev1.EnvVar {
	env := []corev1.EnvVar{fieldEnv("POD_IP", "status.podIP"), leaveEnv()}
	if in.encrypted(site.Name) {
		env = append(env, keyringFileEnv(in))
	}
	return env
}

func leaveEnv() corev1.EnvVar {
	return corev1.EnvVar{Name: "MFG_LEAVE_TIMEOUT", Value: leaveTimeout.String()}
}

// leaveHook has the kubelet wait with the end of mysqld until the role has moved away. It runs a program and asks no
// address, because the kubelet would wait for a sidecar that hangs as long as the pod may take, with no liveness probe
// left that ends mysqld before its lease runs out (I4). Native sidecars are ended after mysqld.
func leaveHook() *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{binDir + "/sidecar", "leave"}}}
}

// PeerAddr is how the sidecars of other sites reach that of a site.
func PeerAddr(namespace, group, site string) string {
	return Host(namespace, group, site) + ":" + strconv.Itoa(wire.PortSidecar)
}

// peers are sorted, so that the order of spec.sites does not restart pods. One that is new and has no data is left out: what it never
// could vouch for no failover has to ask it about (decision 0019).
func peers(in Input, site string) string {
	var hosts []string
	for _, other := range in.Group.Spec.Sites {
		if other.Name != site && !in.Unlisted[other.Name] {
			hosts = append(hosts, PeerAddr(in.Group.Namespace, in.Group.Name, other.Name))
		}
	}
	slices.Sort(hosts)
	return strings.Join(hosts, ",")
}

func duration(d metav1.Duration, fallback time.Duration) string {
	return cmp.Or(max(0, d.Duration), fallback).String()
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path},
	}}
}

func probe(path string, period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intOrString(wire.PortSidecar), Scheme: corev1.URISchemeHTTP,
		}},
		PeriodSeconds: period, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: failures,
	}
}

// liveness is the probe of a process that hangs rather than ends. Without a grace of its own the kubelet would give it
// that of the pod, a minute and more. Who may write does not depend on it: the supervisor of mysqld ends mysqld with the
// lease (docs/internals/fence.md). The probe brings back what hangs.
func liveness(path string) *corev1.Probe {
	p := probe(path, 2, 3)
	p.TerminationGracePeriodSeconds = new(hungKillPeriod)
	return p
}

// mysqlRequest is what mysqld asks for if its site names no CPU: five times what its sidecar does. A container without a request has a
// twenty-fifth of the weight of one with 50m, and so mysqld stood still while strangers kept its sidecar busy.
const mysqlRequest = "250m"

func mysqlResources(site v1alpha1.Site) corev1.ResourceRequirements {
	out := *site.Resources.DeepCopy()
	_, asked := out.Requests[corev1.ResourceCPU]
	_, limited := out.Limits[corev1.ResourceCPU] // which is the request then
	if asked || limited {
		return out
	}
	if out.Requests == nil {
		out.Requests = corev1.ResourceList{}
	}
	out.Requests[corev1.ResourceCPU] = resource.MustParse(mysqlRequest)
	return out
}

func sidecarResources(in Input) corev1.ResourceRequirements {
	own := in.Group.Spec.Sidecar.Resources
	if len(own.Requests) > 0 || len(own.Limits) > 0 || len(own.Claims) > 0 {
		return *own.DeepCopy()
	}
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("50m"),
		corev1.ResourceMemory: resource.MustParse("64Mi"),
	}}
}
