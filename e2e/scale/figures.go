// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// figures is the whole output. The fields of its form are fixed: other programs read them. New ones may come.
type figures struct {
	Points []point `json:"points"`
}

// point is one size.
type point struct {
	Groups int `json:"groups"`
	Sites  int `json:"sites"`
	// CPUCores is the operator's processor time over the time of the measurement, RSSMiB the most memory it held then.
	CPUCores float64 `json:"cpuCores"`
	RSSMiB   float64 `json:"rssMiB"`
	// DecisionAgeP99Seconds is how old the last decision about a group was when it was looked at.
	DecisionAgeP99Seconds float64 `json:"decisionAgeP99Seconds"`
	// APIWritesPerSecond counts what changes something at the API server, from all programs together, but for leases.
	APIWritesPerSecond float64 `json:"apiWritesPerSecond"`

	DecisionAgeMaxSeconds float64            `json:"decisionAgeMaxSeconds"`
	LeaseWritesPerSecond  float64            `json:"leaseWritesPerSecond"`
	WritesByResource      map[string]float64 `json:"writesByResource,omitempty"`
	PeakRSSMiB            float64            `json:"peakRSSMiB"`
	Goroutines            float64            `json:"goroutines"`
	// What the operator did a second: queries to MySQL, logins for them, pushes to sidecars, connections made for those, and
	// answers to what sidecars ask.
	QueriesPerSecond float64 `json:"queriesPerSecond"`
	LoginsPerSecond  float64 `json:"loginsPerSecond"`
	PushesPerSecond  float64 `json:"pushesPerSecond"`
	DialsPerSecond   float64 `json:"dialsPerSecond"`
	AsksPerSecond    float64 `json:"asksPerSecond"`
	AsksFailed       int64   `json:"asksFailed"`
	// Caches is true if every group had one, CacheAsksPerSecond how often caches were asked for their state.
	Caches             bool    `json:"caches,omitempty"`
	CacheAsksPerSecond float64 `json:"cacheAsksPerSecond,omitempty"`
	// Backups is set if every group was backed up at the same minute; then the ages of decisions and the memory are of that time.
	Backups *backupFigures `json:"backups,omitempty"`
	// What else ran on the machine.
	APIServerCores float64   `json:"apiServerCores"`
	EtcdCores      float64   `json:"etcdCores"`
	FakesCores     float64   `json:"fakesCores"`
	TLS            bool      `json:"tls"`
	BringUpSeconds float64   `json:"bringUpSeconds"`
	WindowSeconds  float64   `json:"windowSeconds"`
	MeasuredAt     time.Time `json:"measuredAt"`
	Targets        []target  `json:"targets,omitempty"`
}

// target is a limit of one figure.
type target struct {
	Figure string  `json:"figure"`
	Limit  float64 `json:"limit"`
	Got    float64 `json:"got"`
	Met    bool    `json:"met"`
}

// leases is the resource with which processes say that they live.
const leases = "leases"

func (f *field) sumUp(before, after reading, o observations) *point {
	seconds := after.at.Sub(before.at).Seconds()
	per := func(n float64) float64 { return round(n / seconds) }
	cores := func(a, b usage) float64 { return round((b.cpu - a.cpu).Seconds() / seconds) }
	p := &point{
		Groups: f.size.groups, Sites: f.size.sites, CPUCores: cores(before.operator, after.operator), RSSMiB: round(o.rssMiB),
		DecisionAgeP99Seconds: round(percentile(o.ages, 99)), DecisionAgeMaxSeconds: round(percentile(o.ages, 100)),
		PeakRSSMiB: round(after.operator.peakMiB), Goroutines: after.goroutines,
		QueriesPerSecond: per(after.queries - before.queries), LoginsPerSecond: per(after.logins - before.logins),
		PushesPerSecond: per(float64(after.pushes - before.pushes)), DialsPerSecond: per(float64(after.dials - before.dials)), AsksPerSecond: per(float64(after.asks - before.asks)),
		AsksFailed: after.failed - before.failed, APIServerCores: cores(before.api, after.api), EtcdCores: cores(before.etcd, after.etcd),
		FakesCores: cores(before.own, after.own), TLS: !f.options.plain, WindowSeconds: round(seconds),
		MeasuredAt: after.at.UTC().Truncate(time.Second), WritesByResource: map[string]float64{},
		Caches: f.options.cache, CacheAsksPerSecond: per(float64(after.cacheAsks - before.cacheAsks)),
	}
	sum := 0.0
	for name, n := range after.writes {
		more := n - before.writes[name]
		switch {
		case more == 0:
		case name == leases:
			p.LeaseWritesPerSecond = per(more)
		default:
			p.WritesByResource[name] = more
			sum += more
		}
	}
	p.APIWritesPerSecond = per(sum)
	p.judge()
	return p
}

// Targets of a thousand groups of three sites; that nothing is written while nothing changes holds for every size.
const (
	wantAge    = 3.0
	wantRSS    = 600.0
	wantWrites = 0.1
)

func (p *point) judge() {
	p.Targets = []target{{Figure: "apiWritesPerSecond", Limit: wantWrites, Got: p.APIWritesPerSecond}}
	p.Targets = append(p.Targets, target{Figure: "decisionAgeP99Seconds", Limit: wantAge, Got: p.DecisionAgeP99Seconds},
		target{Figure: "rssMiB", Limit: wantRSS, Got: p.RSSMiB})
	for i := range p.Targets {
		p.Targets[i].Met = p.Targets[i].Got <= p.Targets[i].Limit
	}
}

func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

func round(f float64) float64 { return math.Round(f*1000) / 1000 }

func (f *figures) write(path string) error {
	if f.Points == nil {
		f.Points = []point{}
	}
	raw, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encode figures: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	if err := os.WriteFile(path, append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}

// growth is by how much more processor time a further group costs in the upper part of the curve than in the lower: 1 is
// a straight line. It is false with fewer than three points of the same number of sites.
func (f *figures) growth() (float64, bool) {
	var curve []point
	for _, p := range f.Points {
		if len(curve) == 0 || p.Sites == curve[0].Sites && p.Groups > curve[len(curve)-1].Groups {
			curve = append(curve, p)
		}
	}
	if len(curve) < 3 {
		return 0, false
	}
	slope := func(a, b point) float64 { return (b.CPUCores - a.CPUCores) / float64(b.Groups-a.Groups) }
	low, high := slope(curve[0], curve[1]), slope(curve[1], curve[len(curve)-1])
	if low <= 0 {
		return 0, false
	}
	return high / low, true
}

func (f *figures) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nGROUPS\tSITES\tCORES\tRSS MiB\tAGE P99\tAGE MAX\tAPI WRITES/S\tLEASES/S\tQUERIES/S\tLOGINS/S\tCACHES/S\tPUSHES/S\tDIALS/S\tASKS/S\tVERDICT")
	for _, p := range f.Points {
		var missed []string
		for _, t := range p.Targets {
			if !t.Met {
				missed = append(missed, t.Figure)
			}
		}
		verdict := "within"
		if len(missed) > 0 {
			verdict = "MISSED " + strings.Join(missed, ", ")
		}
		fmt.Fprintf(w, "%d\t%d\t%.3f\t%.0f\t%.2f s\t%.2f s\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%s\n", p.Groups, p.Sites, p.CPUCores, p.RSSMiB,
			p.DecisionAgeP99Seconds, p.DecisionAgeMaxSeconds, p.APIWritesPerSecond, p.LeaseWritesPerSecond, p.QueriesPerSecond,
			p.LoginsPerSecond, p.CacheAsksPerSecond, p.PushesPerSecond, p.DialsPerSecond, p.AsksPerSecond, verdict)
	}
	// A terminal that went away takes nothing along: the figures are in the file.
	_ = w.Flush()
	if g, ok := f.growth(); ok {
		fmt.Fprintf(out, "a further group costs %.2f times as much processor time at the top of the curve as at its bottom (1 is linear)\n", g)
	}
}
