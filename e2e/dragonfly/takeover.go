// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/e2e/resp"
)

// A take-over is asked of the replica. It has the old master stop all writes and tell how far it got, waits until it has got there
// itself, and has the old master end for good before it takes the first write. The old master goes on if the replica does not come
// back in time, and nobody takes writes if it ends just when the replica dies; that is how it is with Dragonfly, too.
const (
	// longestTakeOver bounds what a client may ask for.
	longestTakeOver = 10 * time.Minute
	// dialSlack is what the connection to the old master may take beside the time for the take-over.
	dialSlack = 2 * time.Second
	// looksEvery is how often the replica looks how far it is.
	looksEvery = 5 * time.Millisecond
)

// takeOver answers REPLTAKEOVER seconds [SAVE] at a replica.
func (p *proxy) takeOver(args []string) []byte {
	if len(args) == 0 {
		return failed("wrong number of arguments for 'repltakeover' command")
	}
	seconds, err := strconv.ParseFloat(args[0], 64)
	if err != nil {
		return failed("value is not an integer or out of range")
	}
	if seconds < 0 {
		return failed("timeout is negative")
	}
	limit := min(time.Duration(seconds*float64(time.Second)), longestTakeOver)
	ctx, cancel := context.WithTimeout(context.Background(), limit+dialSlack)
	defer cancel()
	admin, err := p.child.admin(ctx)
	if err != nil {
		return failed("%v", err)
	}
	defer func() { _ = admin.Close() }()
	f, err := replication(admin)
	switch {
	case err != nil:
		return failed("%v", err)
	case f["role"] == "master":
		return []byte("+OK\r\n") // it is what was asked for
	case f["master_link_status"] != "up":
		return failed("Full sync not done")
	}
	if err := p.takeFrom(ctx, admin, f, limit); err != nil {
		return failed("Couldn't execute takeover: %v", err)
	}
	if _, err := admin.Do("REPLICAOF", "NO", "ONE"); err != nil {
		return failed("%v", err)
	}
	fmt.Fprintln(os.Stderr, "Takeover successful, promoting this instance to master.")
	return []byte("+OK\r\n")
}

func replication(admin *resp.Client) (map[string]string, error) {
	v, err := admin.Do("INFO", "replication")
	return resp.Section(v.Text), err
}

// takeFrom gets everything of the old master and ends it.
func (p *proxy) takeFrom(ctx context.Context, admin *resp.Client, f map[string]string, limit time.Duration) error {
	dialer, err := p.toMaster(admin)
	if err != nil {
		return err
	}
	master, err := dialer.Dial(ctx, "tcp", net.JoinHostPort(f["master_host"], f["master_port"]))
	if err != nil {
		return err
	}
	defer func() { _ = master.Close() }()
	began := time.Now()
	v, err := master.DoFor(limit+dialSlack, "DFLY", "TAKEOVER", strconv.FormatInt(limit.Milliseconds(), 10))
	if err != nil {
		return err
	}
	for {
		f, err := replication(admin)
		if err != nil {
			return err
		}
		have, err := strconv.ParseInt(f["slave_repl_offset"], 10, 64)
		if err == nil && have >= v.Int {
			break
		}
		if time.Since(began) > limit {
			_, _ = master.Do("DFLY", "RESUME")
			return fmt.Errorf("%d bytes behind after %s", v.Int-have, limit)
		}
		time.Sleep(looksEvery)
	}
	_, err = master.Do("DFLY", "TAKEN")
	return err
}

// toMaster is how this replica connects to its master: by its own certificate and the password for masters.
func (p *proxy) toMaster(admin *resp.Client) (resp.Dialer, error) {
	d := resp.Dialer{DialTimeout: dialSlack, Timeout: dialSlack}
	v, err := admin.Do("CONFIG", "GET", "masterauth")
	if err != nil {
		return d, err
	}
	if len(v.Items) == 2 {
		d.Password = v.Items[1].Text
	}
	if !p.settings.on("tls_replication") {
		return d, nil
	}
	config, _, err := p.certificates()
	if err != nil {
		return d, err
	}
	raw, err := os.ReadFile(p.settings.authorities())
	if err != nil {
		return d, fmt.Errorf("load CA certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return d, errors.New("load CA certificates: there are none in the file")
	}
	// Replicas check who signed the master's certificate, and not the name in it.
	config.InsecureSkipVerify = true
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errors.New("the master shows no certificate")
		}
		others := x509.NewCertPool()
		for _, c := range state.PeerCertificates[1:] {
			others.AddCert(c)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, Intermediates: others})
		return err
	}
	d.TLS = config
	return d, nil
}

// authorities is the file with the CA certificates by which replicas know their master: Dragonfly's own flag, or what its TLS library
// takes without one.
func (s settings) authorities() string {
	if file := s["tls_ca_cert_file"]; file != "" {
		return file
	}
	return os.Getenv("SSL_CERT_FILE")
}

// answerReplica answers DFLY TAKEOVER, TAKEN and RESUME at the old master.
func (p *proxy) answerReplica(args []string) []byte {
	p.handover.Lock()
	defer p.handover.Unlock()
	word := ""
	if len(args) > 0 {
		word = strings.ToUpper(args[0])
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminLimit)
	defer cancel()
	admin, err := p.child.admin(ctx)
	if err != nil {
		return failed("%v", err)
	}
	defer func() { _ = admin.Close() }()
	switch {
	case word == "TAKEOVER" && len(args) == 2:
		return p.stopWrites(admin, args[1])
	case word == "RESUME":
		p.deadline = time.Time{}
		_, err = admin.Do("CLIENT", "UNPAUSE")
	case word == "TAKEN":
		err = p.giveUp(admin)
	default:
		err = errors.New("syntax error")
	}
	if err != nil {
		return failed("%v", err)
	}
	return []byte("+OK\r\n")
}

// stopWrites holds all writes back for a time and tells how far this master got.
func (p *proxy) stopWrites(admin *resp.Client, millis string) []byte {
	n, err := strconv.ParseInt(millis, 10, 64)
	if err != nil || n < 0 {
		return failed("syntax error")
	}
	limit := min(time.Duration(n)*time.Millisecond, longestTakeOver) + dialSlack
	if _, err := admin.Do("CLIENT", "PAUSE", strconv.FormatInt(limit.Milliseconds(), 10), "WRITE"); err != nil {
		return failed("%v", err)
	}
	f, err := replication(admin)
	if err == nil && f["role"] != "master" {
		err = errors.New("this is no master")
	}
	if err != nil {
		_, _ = admin.Do("CLIENT", "UNPAUSE")
		return failed("%v", err)
	}
	p.deadline = time.Now().Add(limit - dialSlack/2)
	return fmt.Appendf(nil, ":%s\r\n", f["master_repl_offset"])
}

// giveUp ends this master for good, if it still holds its writes back.
func (p *proxy) giveUp(admin *resp.Client) error {
	if p.takenOver || time.Now().After(p.deadline) {
		return errors.New("the take-over is not under way any more")
	}
	// Longer than it takes to end.
	if _, err := admin.Do("CLIENT", "PAUSE", strconv.FormatInt((2*endLimit).Milliseconds(), 10), "WRITE"); err != nil {
		return err
	}
	p.takenOver = true
	close(p.taken)
	return nil
}
