// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
)

const (
	// queued is how many changes wait for the collector. A fleet that fails over as a whole is more; what does not fit is dropped.
	queued = 256
	// sendTimeout bounds one try. There is no second one.
	sendTimeout = 5 * time.Second
	// path is where OTLP over HTTP takes traces.
	path = "/v1/traces"
)

var seriesTraces = metrics.Counter(metrics.Operator, "operator_traces_total",
	"Traces of changes of the active site by outcome: sent, failed, or dropped because the collector did not keep up.", "outcome")

// Options is what an Exporter is made of.
type Options struct {
	// Endpoint is the URL of a collector, such as http://collector.monitoring:4318.
	Endpoint string
	// Version is that of the operator.
	Version string
	// Watch tells of each change of a group, one after the other, until stop is called.
	Watch func(ctx context.Context, changed func(before, now *v1alpha1.MysqlFailoverGroup)) (stop func(), err error)
	Log   *slog.Logger
}

// Exporter sends traces while its process leads.
type Exporter struct {
	Options
	url   string
	http  *http.Client
	queue chan change
}

// New looks at the endpoint alone, and asks nobody.
func New(o Options) (*Exporter, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is no URL of a collector: use one such as http://collector.monitoring:4318", o.Endpoint)
	}
	if !strings.HasSuffix(u.Path, path) {
		u.Path = strings.TrimSuffix(u.Path, "/") + path
	}
	return &Exporter{Options: o, url: u.String(), http: &http.Client{Timeout: sendTimeout}, queue: make(chan change, queued)}, nil
}

// NeedLeaderElection implements LeaderElectionRunnable: who leads has persisted the record.
func (e *Exporter) NeedLeaderElection() bool { return true }

// Start listens and sends until the context ends. It is a manager's Runnable. A record that was there at the start was sent by who led then, or
// never is.
func (e *Exporter) Start(ctx context.Context) error {
	stop, err := e.Watch(ctx, e.changed)
	if err != nil {
		return fmt.Errorf("watch groups for traces: %w", err)
	}
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-e.queue:
			e.send(ctx, c)
		}
	}
}

// changed waits for nobody.
func (e *Exporter) changed(before, now *v1alpha1.MysqlFailoverGroup) {
	if before.UID != now.UID {
		return
	}
	for _, c := range news(before, now) {
		select {
		case e.queue <- c:
		default:
			seriesTraces.WithLabelValues("dropped").Inc()
		}
	}
}

func (e *Exporter) send(ctx context.Context, c change) {
	if err := e.post(ctx, c); err != nil {
		seriesTraces.WithLabelValues("failed").Inc()
		e.Log.Warn("the trace of a failover was not taken, and is not sent again", "namespace", c.group.Namespace, "group", c.group.Name, "epoch", c.record.Epoch, "error", err)
		return
	}
	seriesTraces.WithLabelValues("sent").Inc()
}

func (e *Exporter) post(ctx context.Context, c change) error {
	body, err := proto.Marshal(c.trace(e.Version))
	if err != nil {
		return fmt.Errorf("encode trace: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := e.http.Do(request)
	if err != nil {
		return fmt.Errorf("ask collector: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)); err != nil {
		return fmt.Errorf("read the collector's answer: %w", err)
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s", answer.Status)
	}
	return nil
}
