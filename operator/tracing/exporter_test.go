// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// recorded is a group with a failover from east to west for each epoch, newest first, as its status has them.
func recorded(epochs ...int64) *v1alpha1.MysqlFailoverGroup {
	g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "uid-1"}}
	for _, epoch := range epochs {
		g.Status.Failovers = append(g.Status.Failovers, v1alpha1.FailoverRecord{
			Epoch: epoch, Kind: v1alpha1.FailoverEmergency, From: "east", To: "west", Reason: v1alpha1.ReasonActiveSiteSilent,
			DetectedAt: metav1.NewMicroTime(noon), StartedAt: metav1.NewMicroTime(noon.Add(2 * time.Second)), OpenedAt: metav1.NewMicroTime(noon.Add(23 * time.Second)),
			Timeline:         []v1alpha1.TimelineEntry{{Step: "detected"}, {Step: "decided", Millis: 2000}, {Step: "gatePassed", Millis: 22500}, {Step: "opened", Millis: 23000}},
			Evidence:         []string{"the lease of east is over"},
			LostTransactions: 3,
		})
	}
	return g
}

// collector takes traces as a collector of OpenTelemetry does: OTLP over HTTP, in protobuf.
type collector struct {
	*httptest.Server
	got chan *tracepb.TracesData
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{got: make(chan *tracepb.TracesData, 10)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || err != nil {
			http.Error(w, "no trace", http.StatusBadRequest)
			return
		}
		data := &tracepb.TracesData{}
		if err := proto.Unmarshal(body, data); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.got <- data
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) one(t *testing.T) *tracepb.TracesData {
	t.Helper()
	select {
	case data := <-c.got:
		return data
	case <-time.After(time.Minute):
		t.Fatal("no trace came")
		return nil
	}
}

func exporter(t *testing.T, endpoint string) *Exporter {
	t.Helper()
	e, err := New(Options{Endpoint: endpoint, Version: "v1.2.3", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// drain sends what is queued, as Start does.
func drain(t *testing.T, e *Exporter) {
	t.Helper()
	for len(e.queue) > 0 {
		e.send(t.Context(), <-e.queue)
	}
}

// step is what is compared of a span.
type step struct {
	Name, Parent string
	From, To     time.Duration
}

func TestAFailoverIsOneTrace(t *testing.T) {
	c := newCollector(t)
	e := exporter(t, c.URL)
	e.changed(recorded(6), recorded(7, 6))
	drain(t, e)
	data := c.one(t)
	resource := data.ResourceSpans[0]
	if got := valuesOf(resource.Resource.Attributes); got["service.name"] != "mfg-operator" || got["service.version"] != "v1.2.3" {
		t.Errorf("resource %v", got)
	}
	spans := resource.ScopeSpans[0].Spans
	names := map[string]string{"": ""}
	for _, s := range spans {
		names[string(s.SpanId)] = s.Name
		if len(s.TraceId) != 16 || len(s.SpanId) != 8 || !bytes.Equal(s.TraceId, spans[0].TraceId) {
			t.Errorf("%s: trace %x, span %x", s.Name, s.TraceId, s.SpanId)
		}
	}
	if len(names) != len(spans)+1 {
		t.Errorf("%d spans have %d identifiers", len(spans), len(names)-1)
	}
	var got []step
	for _, s := range spans {
		at := func(nanos uint64) time.Duration { return time.Unix(0, int64(nanos)).Sub(noon) }
		got = append(got, step{s.Name, names[string(s.ParentSpanId)], at(s.StartTimeUnixNano), at(s.EndTimeUnixNano)})
	}
	const root = "Emergency failover"
	if diff := cmp.Diff([]step{
		{root, "", 0, 23 * time.Second},
		{"decided", root, 0, 2 * time.Second},
		{"gatePassed", root, 2 * time.Second, 22500 * time.Millisecond},
		{"opened", root, 22500 * time.Millisecond, 23 * time.Second},
	}, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{
		"k8s.namespace.name": "shop", "mfg.group": "orders", "mfg.epoch": int64(7), "mfg.kind": "Emergency", "mfg.from": "east", "mfg.to": "west",
		"mfg.reason": "ActiveSiteSilent", "mfg.lost_transactions": int64(3), "mfg.loss_exact": false, "mfg.evidence": "the lease of east is over",
	}, valuesOf(spans[0].Attributes)); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	// Another operator that sends the same record sends the same trace.
	e.changed(recorded(6), recorded(7, 6))
	drain(t, e)
	if again := c.one(t); !proto.Equal(data, again) {
		t.Errorf("the same record is another trace: %s", hex.EncodeToString(again.ResourceSpans[0].ScopeSpans[0].Spans[0].TraceId))
	}
}

func valuesOf(all []*commonpb.KeyValue) map[string]any {
	out := map[string]any{}
	for _, a := range all {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			out[a.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			out[a.Key] = v.IntValue
		case *commonpb.AnyValue_BoolValue:
			out[a.Key] = v.BoolValue
		case *commonpb.AnyValue_ArrayValue:
			out[a.Key] = v.ArrayValue.Values[0].GetStringValue()
		}
	}
	return out
}

// Only what was recorded since is sent, once, oldest first; a group that was made later begins with what it has.
func TestWhatIsNews(t *testing.T) {
	for name, tc := range map[string]struct {
		before, now *v1alpha1.MysqlFailoverGroup
		want        []int64
	}{
		"nothing":           {recorded(7, 6), recorded(7, 6), nil},
		"one":               {recorded(6), recorded(7, 6), []int64{7}},
		"two at once":       {recorded(5), recorded(7, 6, 5), []int64{6, 7}},
		"the first ever":    {recorded(), recorded(1), []int64{1}},
		"records forgotten": {recorded(7, 6), recorded(), nil},
	} {
		var got []int64
		for _, c := range news(tc.before, tc.now) {
			got = append(got, c.record.Epoch)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	e := exporter(t, "http://127.0.0.1:9")
	other := recorded(7)
	other.UID = "uid-2"
	e.changed(recorded(6), other)
	if len(e.queue) > 0 {
		t.Error("a group of the same name that was made later has had a failover of the former one")
	}
}

// Start hears of what is watched, sends it, and lets go of the watch when it ends.
func TestStartSendsWhatIsWatched(t *testing.T) {
	c := newCollector(t)
	e := exporter(t, c.URL)
	watched, stopped := make(chan func(before, now *v1alpha1.MysqlFailoverGroup), 1), make(chan struct{})
	e.Watch = func(_ context.Context, changed func(before, now *v1alpha1.MysqlFailoverGroup)) (func(), error) {
		watched <- changed
		return func() { close(stopped) }, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Start(ctx) }()
	(<-watched)(recorded(6), recorded(7, 6))
	if data := c.one(t); len(data.ResourceSpans) != 1 {
		t.Errorf("%v", data)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	<-stopped
	if !e.NeedLeaderElection() {
		t.Error("two operators would send what one has recorded")
	}
}

// A collector that takes requests and never answers: who tells of a failover never waits, what does not fit is dropped and counted, and the one
// that is being sent is given up.
func TestACollectorThatHangsHoldsNobodyUp(t *testing.T) {
	release := make(chan struct{})
	asked := make(chan struct{}, queued+10)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(release); hanging.Close() })
	e := exporter(t, hanging.URL)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.send(ctx, change{record: recorded(1).Status.Failovers[0]})
	}()
	<-asked
	dropped := testutil.ToFloat64(seriesTraces.WithLabelValues("dropped"))
	began := time.Now()
	for epoch := range int64(queued + 7) {
		e.changed(recorded(epoch), recorded(epoch+1))
	}
	if took := time.Since(began); took > sendTimeout {
		t.Errorf("telling took %s", took)
	}
	if got := testutil.ToFloat64(seriesTraces.WithLabelValues("dropped")) - dropped; got != 7 || len(e.queue) != queued {
		t.Errorf("%v dropped, %d queued", got, len(e.queue))
	}
	cancel()
	<-done
	failed := testutil.ToFloat64(seriesTraces.WithLabelValues("failed"))
	e.http.Timeout = 50 * time.Millisecond
	e.send(t.Context(), <-e.queue)
	if got := testutil.ToFloat64(seriesTraces.WithLabelValues("failed")) - failed; got != 1 {
		t.Errorf("%v failed of one that no collector answered", got)
	}
}

func TestARefusalIsNoTrace(t *testing.T) {
	refusing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(refusing.Close)
	if err := exporter(t, refusing.URL).post(t.Context(), change{record: recorded(1).Status.Failovers[0]}); err == nil {
		t.Error("a collector that knows no such path took it")
	}
}

func TestEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://collector:4318": "http://collector:4318/v1/traces", "https://collector/": "https://collector/v1/traces",
		"http://collector/otlp": "http://collector/otlp/v1/traces", "http://collector:4318/v1/traces": "http://collector:4318/v1/traces",
		"collector:4318": "", "grpc://collector:4317": "", "http://": "", "http://collector?a=b": "", "": "",
	} {
		e, err := New(Options{Endpoint: endpoint})
		if (err != nil) != (want == "") || err == nil && e.url != want {
			t.Errorf("%q: %v, %v", endpoint, e, err)
		}
	}
}
