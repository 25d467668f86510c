// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// measurement is one line of the text that Prometheus reads.
type measurement struct {
	labels map[string]string
	value  float64
}

// parseMetrics finds the lines of one series. Label values of the metrics that are read here hold no quotes or commas.
func parseMetrics(text, name string) []measurement {
	var all []measurement
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), name)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		m := measurement{labels: map[string]string{}}
		if rest[0] == '{' {
			var inside string
			if inside, rest, ok = strings.Cut(rest[1:], "}"); !ok {
				continue
			}
			for pair := range strings.SplitSeq(inside, ",") {
				key, value, _ := strings.Cut(pair, "=")
				m.labels[key] = strings.Trim(value, `"`)
			}
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
		if err != nil {
			continue
		}
		m.value = value
		all = append(all, m)
	}
	return all
}

// gauge is the value of a series without labels; 0 if there is none.
func gauge(text, name string) float64 {
	for _, m := range parseMetrics(text, name) {
		return m.value
	}
	return 0
}

func fetch(ctx context.Context, c *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", url, err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return string(body), err
}

// usage is what a process has used so far.
type usage struct {
	cpu     time.Duration
	rssMiB  float64
	peakMiB float64
}

// ticks is how many clock ticks a second has in /proc, on every Linux there is.
const ticks = 100

func usageOf(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, fmt.Errorf("read usage: %w", err)
	}
	u, err := parseStat(string(stat))
	if err != nil {
		return u, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, fmt.Errorf("read usage: %w", err)
	}
	u.rssMiB, u.peakMiB = kib(string(status), "VmRSS:")/1024, kib(string(status), "VmHWM:")/1024
	return u, nil
}

// parseStat reads the processor time out of /proc/PID/stat.
func parseStat(stat string) (usage, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system {
		return usage{}, errors.New("read usage: the line is cut off")
	}
	u, err1 := strconv.ParseInt(fields[user], 10, 64)
	s, err2 := strconv.ParseInt(fields[system], 10, 64)
	return usage{cpu: time.Duration(u+s) * time.Second / ticks}, errors.Join(err1, err2)
}

func kib(status, key string) float64 {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, key); ok {
			value, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			n, err := strconv.ParseFloat(value, 64)
			if err == nil {
				return n
			}
		}
	}
	return 0
}

// patience is how long something may take, and how often it is looked: what is looked at costs something too.
type patience struct{ limit, every time.Duration }

func upTo(limit time.Duration) patience { return patience{limit: limit, every: 500 * time.Millisecond} }

// poll tries until it succeeds, at most for the given time, and then tells the last error.
func poll(ctx context.Context, p patience, what string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if errors.Is(err, errEnded) {
			return err // nobody starts it again
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait %s for %s: %w", p.limit, what, err)
		case <-time.After(p.every):
		}
	}
}
