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
	// verifyPatience is how long a receiver may take to connect to a source that it has to verify, before it gets its old settings back.
	verifyPatience = time.Second
	verifyLook     = 50 * time.Millisecond
)

// VerifySource makes the receiver of a replica verify its source from now on. It stops the receiver for a moment; the applier continues
// meanwhile. A receiver that does not connect that way within a second gets its old settings back: a wrong certificate must not keep a
// site from replicating. VerifySource changes nothing on a server that does not receive from that source now, or whose applier does not
// run, and returns ErrNotFollowing: they were stopped for a reason. It changes nothing on a server that verifies already.
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

// verifySource also returns the receiver's old settings, if it may have changed them.
func verifySource(ctx context.Context, conn *sql.Conn, src Source) (*channel, error) {
	have, err := readChannel(ctx, conn)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read channel: %w", err)
	case have.config.host != src.Host || have.config.port != src.Port || have.config.user != src.User || have.receiver != "ON" || have.applier != "ON":
		return nil, ErrNotFollowing // without a connection nothing would show whether the change is good
	case have.config == channelOf(src):
		return nil, nil
	}
	if err := setVerification(ctx, conn, channelOf(src)); err != nil {
		return &have.config, err
	}
	return &have.config, awaitReceiver(ctx, conn)
}

// setVerification changes how a receiver verifies its source, and nothing else. The applier continues.
func setVerification(ctx context.Context, conn *sql.Conn, want channel) error {
	return changeReceiver(ctx, conn, "SOURCE_SSL = 1, SOURCE_SSL_CA = ?, SOURCE_SSL_VERIFY_SERVER_CERT = ?, GET_SOURCE_PUBLIC_KEY = ?",
		want.ca, bit(want.verify), bit(want.publicKey))
}

// restoreVerification gives a receiver its old settings back, even after the caller's context has ended: over a connection of its own,
// since a statement that is given up takes its connection along.
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
