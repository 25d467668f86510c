// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// ErrUnverified says that a receiver could not connect with a verified source. It connects as before.
var ErrUnverified = errors.New("the receiver cannot verify its source")

const (
	// verifyPatience is how long a receiver may take to connect with a source that it is to verify, before it goes back to what it had.
	verifyPatience = time.Second
	verifyLook     = 50 * time.Millisecond
)

// VerifySource has the receiver of a replica verify its source from now on. It takes the receiver away for a moment; what it has received is
// applied meanwhile. A receiver that does not connect so within a second gets back what it had: a certificate that is wrong must not
// keep a site from replicating. A server that does not receive from that source just now is left alone, with ErrNotFollowing: whoever stopped its
// receiver had a reason. On one that verifies already it changes nothing.
func (db *DB) VerifySource(ctx context.Context, src Source) error {
	if err := src.validate(); err != nil {
		return fmt.Errorf("verify %s: %w", src, err)
	}
	ctx, cancel := long(ctx)
	defer cancel()
	var had *channel
	err := db.onFresh(ctx, func(conn *sql.Conn) (err error) {
		had, err = verifySource(ctx, conn, src)
		return err
	})
	if err != nil && had != nil {
		err = errors.Join(err, db.restoreVerification(ctx, *had))
	}
	if err != nil {
		return fmt.Errorf("have %s verify %s: %w", db.target, src, err)
	}
	return nil
}

// verifySource also returns what the receiver had, if it may have been changed.
func verifySource(ctx context.Context, conn *sql.Conn, src Source) (*channel, error) {
	have, err := readChannel(ctx, conn)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read channel: %w", err)
	case have.config.host != src.Host || have.config.port != src.Port || have.config.user != src.User || have.receiver != "ON":
		return nil, ErrNotFollowing // without a connection there is none to lose, and nothing tells whether the change is good
	case have.config == channelOf(src):
		return nil, nil
	}
	if err := setVerification(ctx, conn, channelOf(src)); err != nil {
		return &have.config, err
	}
	return &have.config, awaitReceiver(ctx, conn)
}

// setVerification changes how a receiver verifies its source, and nothing else. The applier goes on.
func setVerification(ctx context.Context, conn *sql.Conn, want channel) error {
	if err := execAll(ctx, conn, "STOP REPLICA IO_THREAD"); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, "CHANGE REPLICATION SOURCE TO SOURCE_SSL = 1, SOURCE_SSL_CA = ?, SOURCE_SSL_VERIFY_SERVER_CERT = ?, GET_SOURCE_PUBLIC_KEY = ?",
		want.ca, bit(want.verify), bit(want.publicKey))
	// Started again whatever comes of the change.
	return errors.Join(err, execAll(ctx, conn, "START REPLICA IO_THREAD"))
}

// restoreVerification gives a receiver back what it had, also once the time of whoever asked is over: over a connection of its own, since
// a statement that is given up takes its connection along.
func (db *DB) restoreVerification(ctx context.Context, had channel) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), verifyPatience)
	defer cancel()
	return db.onFresh(ctx, func(conn *sql.Conn) error { return setVerification(ctx, conn, had) })
}

// awaitReceiver waits until the receiver is connected.
func awaitReceiver(ctx context.Context, conn *sql.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, verifyPatience)
	defer cancel()
	var now channelState
	for {
		var err error
		if now, err = readChannel(ctx, conn); err == nil && now.receiver == "ON" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: error %d within %s", ErrUnverified, now.receiverErrno, verifyPatience)
		case <-time.After(verifyLook):
		}
	}
}
