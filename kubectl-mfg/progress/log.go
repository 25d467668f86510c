// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// logTimeout bounds one look at a log: progress is a comfort, and must not hold up the answer.
	logTimeout = 3 * time.Second
	// logMax and logLines bound how much of it is read.
	logMax   = int64(64 << 10)
	logLines = int64(3)
)

// Said is what the program in the pod of a backup or a restore last said.
type Said struct {
	Phase   string `json:"phase"`
	Percent int32  `json:"percent"`
	Bytes   int64  `json:"bytes"`
	Total   int64  `json:"total"`
}

// Words says what the program does.
func (s Said) Words() string { return strings.ToLower(s.Phase) }

// Known returns how far it is, in percent; below 0 if the whole is unknown.
func (s Said) Known() int32 {
	if s.Total <= 0 && s.Percent == 0 || s.Percent < 0 || s.Percent > 100 {
		return -1
	}
	return s.Percent
}

// FromLog reads what the container of the newest pod of a selector last said. The operator may not read logs, so this is the only way to
// learn it; a user who may not either sees only phases.
func FromLog(ctx context.Context, kube kubernetes.Interface, namespace, selector, container string) (Said, bool) {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	list, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil || len(list.Items) == 0 {
		return Said{}, false
	}
	newest := list.Items[0]
	for _, p := range list.Items {
		if p.CreationTimestamp.After(newest.CreationTimestamp.Time) {
			newest = p
		}
	}
	lines, most := logLines, logMax
	stream, err := kube.CoreV1().Pods(namespace).GetLogs(newest.Name, &corev1.PodLogOptions{Container: container, TailLines: &lines, LimitBytes: &most}).Stream(ctx)
	if err != nil {
		return Said{}, false
	}
	defer func() { _ = stream.Close() }()
	raw, err := io.ReadAll(io.LimitReader(stream, logMax))
	if err != nil {
		return Said{}, false
	}
	return last(raw)
}

// last returns the last line that tells of progress. A bar needs nothing else from the log.
func last(raw []byte) (said Said, found bool) {
	for line := range bytes.Lines(raw) {
		var s Said
		if json.Unmarshal(line, &s) == nil && word(s.Phase) {
			said, found = s, true
		}
	}
	return said, found
}

// word is true for one word of letters: a log may hold anything, and this goes to a terminal.
func word(s string) bool {
	const most = 32
	return s != "" && len(s) <= most && strings.IndexFunc(s, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') }) < 0
}

// Selector finds pods that have all of these labels, given in pairs.
func Selector(pairs ...string) string {
	var parts []string
	for i := 0; i+1 < len(pairs); i += 2 {
		parts = append(parts, fmt.Sprintf("%s=%s", pairs[i], pairs[i+1]))
	}
	return strings.Join(parts, ",")
}
