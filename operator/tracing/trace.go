// SPDX-License-Identifier: Apache-2.0

// Package tracing hands the finished record of a change of the active site, as status.failovers has it, to a collector of OpenTelemetry: one
// trace, with a span for each step. It is off by default. It reads what was persisted and nothing else, so that no decision waits for it or
// learns of it; what a collector does not take in time is dropped. See docs/monitoring.md and docs/decisions/0041.
package tracing

import (
	"crypto/sha256"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// change is one change of the active site of a group.
type change struct {
	group  types.NamespacedName
	uid    types.UID
	record v1alpha1.FailoverRecord
}

// news are the changes that a group has recorded since it was seen as before, oldest first.
func news(before, now *v1alpha1.MysqlFailoverGroup) (all []change) {
	var known int64
	for _, r := range before.Status.Failovers {
		known = max(known, r.Epoch)
	}
	records := now.Status.Failovers
	for i := len(records) - 1; i >= 0; i-- { // newest first in status
		if records[i].Epoch > known {
			all = append(all, change{types.NamespacedName{Namespace: now.Namespace, Name: now.Name}, now.UID, *records[i].DeepCopy()})
		}
	}
	return all
}

// trace is a change as a collector wants it. Its identifiers follow from the group and the epoch: who sends it twice sends the same.
func (c change) trace(version string) *tracepb.TracesData {
	r := c.record
	began, ended := r.DetectedAt.Time, r.OpenedAt.Time
	if began.IsZero() {
		began = r.StartedAt.Time
	}
	name := string(r.Kind) + " failover"
	if r.Kind == v1alpha1.FailoverBootstrap {
		name = string(r.Kind) // nobody was active before
	}
	root := c.span(0, name, began, ended)
	root.Attributes = c.attributes()
	spans := []*tracepb.Span{root}
	for i := 1; i < len(r.Timeline) && !r.DetectedAt.IsZero(); i++ {
		from, to := r.Timeline[i-1], r.Timeline[i]
		step := c.span(i, to.Step, began.Add(time.Duration(from.Millis)*time.Millisecond), began.Add(time.Duration(to.Millis)*time.Millisecond))
		step.ParentSpanId = root.SpanId
		spans = append(spans, step)
	}
	return &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource:   &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", "mfg-operator"), text("service.version", version)}},
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{Name: "mysql-mfg.io/failover"}, Spans: spans}},
	}}}
}

func (c change) span(number int, name string, from, to time.Time) *tracepb.Span {
	if to.Before(from) {
		to = from // two clocks, or one that was set: a collector refuses what ends before it begins
	}
	id := sha256.Sum256(fmt.Appendf(nil, "%s/%d", c.uid, c.record.Epoch))
	own := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", c.uid, c.record.Epoch, number))
	return &tracepb.Span{
		TraceId: id[:16], SpanId: own[:8], Name: name, Kind: tracepb.Span_SPAN_KIND_INTERNAL, StartTimeUnixNano: nanos(from), EndTimeUnixNano: nanos(to),
	}
}

func nanos(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }

func (c change) attributes() []*commonpb.KeyValue {
	r := c.record
	all := []*commonpb.KeyValue{
		text("k8s.namespace.name", c.group.Namespace), text("mfg.group", c.group.Name), number("mfg.epoch", r.Epoch),
		text("mfg.kind", string(r.Kind)), text("mfg.from", r.From), text("mfg.to", r.To), text("mfg.reason", string(r.Reason)),
		number("mfg.lost_transactions", r.LostTransactions), value("mfg.loss_exact", &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: r.LossExact}}),
	}
	if r.WritePauseMillis != nil {
		all = append(all, number("mfg.write_pause_ms", *r.WritePauseMillis))
	}
	if len(r.Evidence) > 0 {
		list := &commonpb.ArrayValue{}
		for _, e := range r.Evidence {
			list.Values = append(list.Values, &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: e}})
		}
		all = append(all, value("mfg.evidence", &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}))
	}
	return all
}

func text(key, s string) *commonpb.KeyValue {
	return value(key, &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}})
}

func number(key string, n int64) *commonpb.KeyValue {
	return value(key, &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: n}})
}

func value(key string, v *commonpb.AnyValue) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: v}
}
