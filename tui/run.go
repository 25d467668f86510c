// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/mysql-mfg/mfg/tui/feed"
)

// framesPerSecond is the most often that the terminal is drawn.
const framesPerSecond = 20

// Feeds tell the dashboard what happens.
type Feeds struct {
	Stream *feed.Stream
	// Watch follows the custom resources until the context ends.
	Watch func(context.Context, func(feed.Objects))
}

// follow runs both feeds until the context ends.
func (f Feeds) follow(ctx context.Context, send func(tea.Msg)) *sync.WaitGroup {
	var all sync.WaitGroup
	if f.Stream != nil {
		all.Go(func() { f.Stream.Follow(ctx, func(c feed.Changes) { send(c) }) })
	}
	if f.Watch != nil {
		all.Go(func() { f.Watch(ctx, func(o feed.Objects) { send(o) }) })
	}
	return &all
}

// Run shows the dashboard on a terminal until the user quits or the context ends.
func Run(ctx context.Context, m Model, feeds Feeds, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithFPS(framesPerSecond))
	all := feeds.follow(ctx, p.Send)
	_, err := p.Run()
	cancel()
	all.Wait()
	switch {
	case errors.Is(err, tea.ErrInterrupted), errors.Is(err, tea.ErrProgramKilled) && !errors.Is(err, tea.ErrProgramPanic):
		return nil // the user wanted it to end
	case err != nil:
		return fmt.Errorf("draw: %w", err)
	}
	return nil
}

// Gather listens until both feeds have told what they know, or the context ends, and returns the dashboard of that moment. Only
// Kubernetes knows what happened earlier, so for an open group it also asks for the events, and for the figures.
func Gather(ctx context.Context, m Model, feeds Feeds) Model {
	ctx, cancel := context.WithCancel(ctx)
	told := make(chan tea.Msg)
	all := feeds.follow(ctx, func(msg tea.Msg) {
		select {
		case told <- msg:
		case <-ctx.Done():
		}
	})
	stream, watch := feeds.Stream == nil, feeds.Watch == nil
	for !stream || !watch {
		select {
		case msg := <-told:
			m.take(msg)
			switch msg := msg.(type) {
			case feed.Changes:
				stream = stream || msg.Link != nil
			case feed.Objects:
				watch = true
			}
		case <-ctx.Done():
			stream, watch = true, true
		}
	}
	cancel()
	all.Wait()
	m.fleet.sample()
	if g := m.fleet.groups[m.open]; g != nil {
		ns, name := g.report.Metadata.Namespace, g.report.Metadata.Name
		if ask := m.options.Events; ask != nil {
			m.fleet.heardEvents(ask(ns, name))
		}
		if ask := m.options.Figures; ask != nil {
			m.fleet.heardFigures(ask(ns, name))
		}
	}
	return m
}
