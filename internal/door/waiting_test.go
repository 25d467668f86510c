// SPDX-License-Identifier: Apache-2.0

package door

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// house is an HTTP server behind a door.
type house struct {
	door    *Door
	crowd   *crowd
	server  *http.Server
	ended   chan struct{}
	release chan struct{}
	mu      sync.Mutex
	refused map[string]int
}

// build makes one that answers /held only once release is closed, and /spare too, which may lose its connection before.
func build(l Limits) *house {
	h := &house{crowd: newCrowd(), ended: make(chan struct{}), release: make(chan struct{}), refused: map[string]int{}}
	h.door = New(l, func(reason string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.refused[reason]++
	})
	mux := http.NewServeMux()
	mux.HandleFunc("/now", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/held", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-h.release
	})
	mux.HandleFunc("/spare", func(_ http.ResponseWriter, r *http.Request) {
		Spare(r)
		<-h.release
	})
	mux.HandleFunc("/hijack", func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = c.Write([]byte("hello"))
		<-h.release
		_ = c.Close()
	})
	h.server = &http.Server{Handler: h.door.Handler(mux), ReadHeaderTimeout: time.Minute}
	h.door.Watch(h.server)
	go func() { defer close(h.ended); _ = h.server.Serve(h.door.Listen(h.crowd)) }()
	return h
}

func (h *house) close() {
	_ = h.server.Close()
	<-h.ended
	synctest.Wait()
}

// visitor is the client's end of a connection.
type visitor struct {
	conn net.Conn
	mu   sync.Mutex
	got  bytes.Buffer
	over bool
}

func (h *house) visit(addr string) *visitor {
	mine, theirs := net.Pipe()
	v := &visitor{conn: theirs}
	go func() {
		_, _ = io.Copy(v, theirs)
		_ = theirs.Close()
		v.mu.Lock()
		defer v.mu.Unlock()
		v.over = true
	}()
	h.crowd.comes <- &from{Conn: mine, addr: addr}
	synctest.Wait()
	return v
}

// Write takes what the server says.
func (v *visitor) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.got.Write(p)
}

// says sends something to the server.
func (v *visitor) says(what string) *visitor {
	_, _ = v.conn.Write([]byte(what))
	synctest.Wait()
	return v
}

func (v *visitor) asks(path string) *visitor {
	return v.says("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n")
}

// out is true if the connection was closed.
func (v *visitor) out() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.over
}

// answers is how many good answers came.
func (v *visitor) answers() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Count(v.got.String(), "HTTP/1.1 200 OK")
}

// TestTheIdleMakeRoomForTheirOwnAddress: who shares an address with strangers who hold all of its connections gets in, and nobody of
// another address goes.
func TestTheIdleMakeRoomForTheirOwnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(Limits{Connections: 64, PerAddress: 32})
		other := h.visit("10.0.0.2:1").asks("/now")
		var strangers []*visitor
		for i := range 32 {
			strangers = append(strangers, h.visit(fmt.Sprint("10.0.0.1:", i)).asks("/now"))
		}
		strangers[0].asks("/now") // so that the second has waited longest by now
		kubelet := h.visit("10.0.0.1:100").asks("/now")
		if kubelet.answers() != 1 || !strangers[1].out() || h.refused[TooManyOfOne] != 1 {
			t.Errorf("%d answers, the oldest is out: %t, refused %v", kubelet.answers(), strangers[1].out(), h.refused)
		}
		for i, s := range strangers {
			if i != 1 && s.out() {
				t.Errorf("stranger %d is out too", i)
			}
		}
		if h.door.total != 33 || other.out() {
			t.Errorf("%d places are taken, another address is out: %t", h.door.total, other.out())
		}
		h.visit("10.0.0.1:101")
		if !strangers[2].out() || strangers[0].out() || kubelet.out() {
			t.Errorf("out: the next %t, the one who asked again %t, the newest %t", strangers[2].out(), strangers[0].out(), kubelet.out())
		}
		h.close()
		if h.door.total != 0 || len(h.door.guests) != 0 {
			t.Errorf("%d places are taken by %d addresses after all", h.door.total, len(h.door.guests))
		}
	})
}

// TestNobodyIsInterrupted: whoever comes, a request under way gets its answer.
func TestNobodyIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(Limits{Connections: 64, PerAddress: 32})
		var busy []*visitor
		for i := range 32 {
			v := h.visit(fmt.Sprint("10.0.0.1:", i))
			switch i % 3 {
			case 0:
				v.asks("/held")
			case 1:
				v.says("PUT /held HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nwh").says("le")
			default:
				v.says("PUT /held HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nwho\r\n").says("0\r\n\r\n")
			}
			busy = append(busy, v)
		}
		if !h.visit("10.0.0.1:100").out() || h.refused[TooManyOfOne] != 1 || h.door.total != 32 {
			t.Errorf("refused %v, %d places", h.refused, h.door.total)
		}
		close(h.release)
		synctest.Wait()
		for i, v := range busy {
			if v.answers() != 1 || v.out() {
				t.Errorf("%d: %d answers, out: %t", i, v.answers(), v.out())
			}
		}
		newcomer, gone := h.visit("10.0.0.1:101"), 0
		for _, v := range busy {
			if v.out() {
				gone++
			}
		}
		if newcomer.out() || gone != 1 {
			t.Errorf("once they are answered, %d make room, and the newcomer is out: %t", gone, newcomer.out())
		}
		h.close()
	})
}

// TestWhoMakesRoom: any connection whose client lets the server wait, or whose answer nobody misses; none that became something else.
func TestWhoMakesRoom(t *testing.T) {
	for name, tt := range map[string]struct {
		does  func(v *visitor)
		stays bool
	}{
		"says nothing":       {func(*visitor) {}, false},
		"half a head":        {func(v *visitor) { v.says("GET /held HTTP/1.1\r\nHo") }, false},
		"a head and no body": {func(v *visitor) { v.says("PUT /held HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n") }, false},
		"half a body":        {func(v *visitor) { v.says("PUT /held HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhal") }, false},
		"chunks without an end": {func(v *visitor) {
			v.says("PUT /held HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nwho\r\n")
		}, false},
		"answered":                 {func(v *visitor) { v.asks("/now") }, false},
		"nobody misses the answer": {func(v *visitor) { v.asks("/spare") }, false},
		"asks":                     {func(v *visitor) { v.asks("/held") }, true},
		"asks a second time":       {func(v *visitor) { v.asks("/now").asks("/held") }, true},
		"has another protocol":     {func(v *visitor) { v.asks("/hijack") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := build(Limits{Connections: 8, PerAddress: 1})
				first := h.visit("10.0.0.1:1")
				tt.does(first)
				second := h.visit("10.0.0.1:2")
				if first.out() == tt.stays || second.out() != tt.stays {
					t.Errorf("out: the first %t, the second %t", first.out(), second.out())
				}
				if h.door.total != 1 || len(h.door.guests) != 1 {
					t.Errorf("%d places are taken by %d addresses", h.door.total, len(h.door.guests))
				}
				close(h.release)
				h.close()
				if h.door.total != 0 || len(h.door.guests) != 0 {
					t.Errorf("%d places are taken by %d addresses after all", h.door.total, len(h.door.guests))
				}
			})
		})
	}
}

// TestAServerMayHaveOtherListeners, and a handler other servers: nothing of theirs has a place.
func TestAServerMayHaveOtherListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := build(Limits{Connections: 8, PerAddress: 1})
		plain := &house{crowd: newCrowd()}
		ended := make(chan struct{})
		go func() { defer close(ended); _ = h.server.Serve(plain.crowd) }()
		close(h.release)
		v := plain.visit("10.0.0.1:1").asks("/now").asks("/held").asks("/spare")
		if v.answers() != 3 || h.door.total != 0 {
			t.Errorf("%d answers, %d places", v.answers(), h.door.total)
		}
		h.close()
		<-ended
	})
}

// TestProbesAreAnsweredWhateverTheirAddressAsked: they take nothing from it, and their connection ends as after a refusal.
func TestProbesAreAnsweredWhateverTheirAddressAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Limits{Connections: 4, PerAddress: 4, Rate: 10, Burst: 20}, func(string) {})
		h := d.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), "/a", "/b")
		ask := func(method, target string) (code int, connection string) {
			r := httptest.NewRequestWithContext(context.Background(), method, target, http.NoBody)
			r.RemoteAddr = "10.0.0.1:1"
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code, w.Header().Get("Connection")
		}
		probe := func() {
			t.Helper()
			for _, path := range []string{"/a", "/b"} {
				if code, connection := ask(http.MethodGet, path); code != http.StatusOK || connection != "close" {
					t.Fatalf("%s: %d, %q", path, code, connection)
				}
			}
		}
		for range 500 {
			probe()
		}
		for i := range 20 {
			if code, connection := ask(http.MethodGet, "/c"); code != http.StatusOK || connection != "" {
				t.Errorf("%d: %d, %q", i, code, connection)
			}
		}
		for _, other := range [][2]string{{http.MethodGet, "/c"}, {http.MethodPost, "/a"}, {http.MethodGet, "/a?b"}, {http.MethodGet, "/a/"}} {
			if code, _ := ask(other[0], other[1]); code != http.StatusTooManyRequests {
				t.Errorf("%v: %d", other, code)
			}
		}
		probe()
	})
}
