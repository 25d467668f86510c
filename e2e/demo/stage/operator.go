// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
)

// Where the operator lives.
const (
	OperatorNamespace = "mfg-system"
	OperatorRelease   = "mfg"
	OperatorName      = "mfg-operator"
)

// OperatorValues pin the operator to the hub, so that no fault of a site takes it along, and restart it when the
// programs in its images changed.
func (s *Stage) OperatorValues() (map[string]any, error) {
	sum, err := s.imageSum("operator", "sidecar", "backup")
	if err != nil {
		return nil, err
	}
	image := func(name string) map[string]any {
		return map[string]any{"repository": "localhost/" + name, "tag": "dev", "pullPolicy": "Never"}
	}
	values := map[string]any{
		"image":          image("mfg-operator"),
		"sidecarImage":   image("mfg-sidecar"),
		"backupImage":    image("mfg-backup"),
		"nodeSelector":   map[string]any{"kubernetes.io/hostname": cluster.HubName},
		"podAnnotations": map[string]any{"mfg-lab/images": sum},
		"upgrades":       map[string]any{"pause": "10s"},
		"auxiliary":      map[string]any{"escrowTLS": map[string]any{"enabled": true, "existingSecret": EscrowSecret}},
	}
	return values, nil
}

// InstallOperator installs or upgrades the operator through its chart and waits until it is ready.
func (s *Stage) InstallOperator(ctx context.Context) error {
	s.Say("installing the operator (chart charts/mfg)")
	if err := s.Namespace(ctx, OperatorNamespace); err != nil {
		return err
	}
	if err := s.ensureEscrowTLS(ctx); err != nil {
		return err
	}
	values, err := s.OperatorValues()
	if err != nil {
		return err
	}
	if _, err := s.Helm(ctx, values, "upgrade", "--install", OperatorRelease, s.Chart("mfg"),
		"--namespace", OperatorNamespace, "--timeout", "2m"); err != nil {
		return err
	}
	return s.AwaitOperator(ctx, 2*time.Minute)
}

// AwaitOperator waits until the operator runs in its newest form and leads.
func (s *Stage) AwaitOperator(ctx context.Context, limit time.Duration) error {
	if _, err := s.Lab.Kubectl(ctx, "-n", OperatorNamespace, "rollout", "status", "deployment/"+OperatorName,
		"--timeout="+limit.String()); err != nil {
		return err
	}
	return Poll(ctx, limit, "the operator to answer", func(ctx context.Context) error {
		_, err := s.Status(ctx)
		return err
	})
}

// ScaleOperator changes the number of operators and waits until that is so.
func (s *Stage) ScaleOperator(ctx context.Context, replicas int) error {
	if _, err := s.Lab.Kubectl(ctx, "-n", OperatorNamespace, "scale", "deployment/"+OperatorName,
		fmt.Sprintf("--replicas=%d", replicas)); err != nil {
		return err
	}
	if replicas > 0 {
		return s.AwaitOperator(ctx, 2*time.Minute)
	}
	return Poll(ctx, time.Minute, "the operator to end", func(ctx context.Context) error {
		pods, err := s.OperatorPods(ctx)
		if err != nil {
			return err
		}
		if len(pods) > 0 {
			return fmt.Errorf("%d operator pods are left", len(pods))
		}
		return nil
	})
}

// OperatorPods are the pods of the operator.
func (s *Stage) OperatorPods(ctx context.Context) ([]corev1.Pod, error) {
	deployment := &appsv1.Deployment{}
	if err := s.Kube.Get(ctx, client.ObjectKey{Namespace: OperatorNamespace, Name: OperatorName}, deployment); err != nil {
		return nil, fmt.Errorf("read the operator's deployment: %w", err)
	}
	var pods corev1.PodList
	if err := s.Kube.List(ctx, &pods, client.InNamespace(OperatorNamespace),
		client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
		return nil, fmt.Errorf("list the operator's pods: %w", err)
	}
	return pods.Items, nil
}

// operatorProgram is the operator in its pod.
var operatorProgram = Program{"operator", "operator"}

// KillOperator sends SIGKILL to the operator from outside, as an OOM killer would. The kubelet starts it again.
func (s *Stage) KillOperator(ctx context.Context) error {
	pods, err := s.OperatorPods(ctx)
	if err != nil {
		return err
	}
	killed := 0
	for i := range pods {
		pid, err := FindIn(&pods[i], operatorProgram)
		if err != nil {
			continue // one that is on its way out, or in
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill the operator: %w", err)
		}
		killed++
	}
	if killed == 0 {
		return errors.New("no operator runs")
	}
	return nil
}

// OperatorLog is everything that the present operator has logged.
func (s *Stage) OperatorLog(ctx context.Context) (string, error) {
	pods, err := s.OperatorPods(ctx)
	if err != nil {
		return "", err
	}
	var all string
	for _, p := range pods {
		stream, err := s.Core.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{}).Stream(ctx)
		if err != nil {
			return all, fmt.Errorf("read log of %s: %w", p.Name, err)
		}
		raw, err := io.ReadAll(stream)
		_ = stream.Close()
		if err != nil {
			return all, fmt.Errorf("read log of %s: %w", p.Name, err)
		}
		all += string(raw)
	}
	return all, nil
}

// Fetch reads a path of a Service in the cluster by way of the API server.
func (s *Stage) Fetch(ctx context.Context, service, port, path string) ([]byte, error) {
	raw, err := s.Core.CoreV1().Services(OperatorNamespace).ProxyGet("http", service, port, path, nil).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("fetch %s from %s: %w", path, service, err)
	}
	return raw, nil
}

// Status is what the operator answers at /status.
func (s *Stage) Status(ctx context.Context) (wire.StatusList, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var list wire.StatusList
	raw, err := s.Fetch(ctx, "mfg-auxiliary", fmt.Sprint(wire.PortOperatorAuxiliary), wire.PathStatus)
	if err != nil {
		return list, err
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return list, fmt.Errorf("decode status: %w", err)
	}
	return list, nil
}

// Chart is the path of one of the project's charts.
func (s *Stage) Chart(name string) string { return filepath.Join(s.Repo, "charts", name) }

// Helm runs helm with values.
func (s *Stage) Helm(ctx context.Context, values any, args ...string) (string, error) {
	if values == nil {
		return s.Lab.Helm(ctx, args...)
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("encode values: %w", err)
	}
	f, err := os.CreateTemp("", "mfg-values-*.json")
	if err != nil {
		return "", fmt.Errorf("write values: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if _, err := f.Write(raw); err != nil {
		return "", fmt.Errorf("write values: %w", err)
	}
	if err := f.Close(); err != nil {
		return "", fmt.Errorf("write values: %w", err)
	}
	return s.Lab.Helm(ctx, append(args, "--values", f.Name())...)
}

// imageSum changes with the programs in the images of these names.
func (s *Stage) imageSum(names ...string) (string, error) {
	sum := sha256.New()
	for _, name := range names {
		f, err := os.Open(filepath.Join(s.Lab.Dir(), "images", name))
		if err != nil {
			return "", fmt.Errorf("read image %s: %w", name, err)
		}
		_, err = io.Copy(sum, f)
		_ = f.Close()
		if err != nil {
			return "", fmt.Errorf("read image %s: %w", name, err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}
