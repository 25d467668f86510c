// SPDX-License-Identifier: Apache-2.0

// Package relay carries Ethernet frames between two network devices, late and with losses, for kernels that have no netem.
// A frame is taken and given with what the kernel notes of it for its offloads, so that large segments and checksums that are
// still to be filled in pass as they would over a cable.
package relay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Quality is what becomes of the frames of one direction.
type Quality struct {
	Delay time.Duration
	// Loss is the part of the frames that is lost, from 0 to 1.
	Loss float64
}

// Relay works until it is stopped.
type Relay struct {
	stop chan struct{}
	done sync.WaitGroup
	fds  []int
}

const (
	// largest is a segment before the kernel cuts it into frames, with the notes before it.
	largest = 10 + 1<<16 + 64
	// waiting is how many frames may be on their way in one direction: a full queue loses, as a cable's does.
	waiting = 8192
	// look is how often a relay that waits for a frame looks whether it is to stop.
	look = 100 * time.Millisecond
)

// Start relays between two devices of this network namespace: what comes from a is carried with one quality, what comes from
// b with the other.
func Start(a, b string, fromA, fromB Quality) (*Relay, error) {
	r := &Relay{stop: make(chan struct{})}
	for _, name := range []string{a, b} {
		fd, err := open(name)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("relay at %s: %w", name, err), r.close())
		}
		r.fds = append(r.fds, fd)
	}
	r.carry(r.fds[0], r.fds[1], fromA)
	r.carry(r.fds[1], r.fds[0], fromB)
	return r, nil
}

// open listens for every frame that comes in at a device.
func open(name string) (int, error) {
	dev, err := net.InterfaceByName(name)
	if err != nil {
		return 0, fmt.Errorf("find device: %w", err)
	}
	all := network(unix.ETH_P_ALL)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open packet socket: %w", err)
	}
	wait := unix.NsecToTimeval(look.Nanoseconds())
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 8<<20),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: dev.Index}),
	)
	if err != nil {
		return 0, errors.Join(fmt.Errorf("prepare packet socket: %w", err), unix.Close(fd))
	}
	return fd, nil
}

// network is a number of two bytes in the order of the network.
func network(n uint16) uint16 { return n<<8 | n>>8 }

// frame is one that is on its way.
type frame struct {
	due time.Time
	raw []byte
}

// carry takes frames from one socket and gives them to the other when they are due, in their order.
func (r *Relay) carry(from, to int, q Quality) {
	way := make(chan frame, waiting)
	r.done.Go(func() {
		defer close(way)
		r.take(from, q, way)
	})
	r.done.Go(func() {
		for f := range way {
			time.Sleep(time.Until(f.due))
			// What the other side does not take is lost, as on any cable.
			_ = unix.Send(to, f.raw, 0)
		}
	})
}

func (r *Relay) take(from int, q Quality, way chan<- frame) {
	buf := make([]byte, largest)
	for {
		select {
		case <-r.stop:
			return
		default:
		}
		n, _, err := unix.Recvfrom(from, buf, 0)
		if err != nil || n == 0 || rand.Float64() < q.Loss {
			continue
		}
		select {
		case way <- frame{due: time.Now().Add(q.Delay), raw: append([]byte(nil), buf[:n]...)}:
		default:
		}
	}
}

// Stop ends the relay. What is on its way still arrives.
func (r *Relay) Stop() error {
	close(r.stop)
	r.done.Wait()
	return r.close()
}

func (r *Relay) close() error {
	var errs []error
	for _, fd := range r.fds {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}
