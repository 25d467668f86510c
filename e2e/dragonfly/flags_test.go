// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFlagsAreTakenAsDragonflyTakesThem(t *testing.T) {
	file := filepath.Join(t.TempDir(), "flags")
	if err := os.WriteFile(file, []byte("# secrets\n--requirepass=a b#c\n\n--masterauth=x\n--notls\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := parseFlags([]string{"--flagfile=" + file, "--port", "6380", "--logtostderr", "-maxmemory=512mb"},
		[]string{"DFLY_dir=/data", "DFLY_PASSWORD=no", "HOME=/"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"requirepass": "a b#c", "masterauth": "x", "tls": "false", "port": "6380", "logtostderr": "true", "maxmemory": "512mb", "dir": "/data",
	} {
		if s[name] != want {
			t.Errorf("%s = %q, want %q", name, s[name], want)
		}
	}
}

func TestWhatDragonflyWouldNotStartWithIsRefused(t *testing.T) {
	loop := filepath.Join(t.TempDir(), "loop")
	if err := os.WriteFile(loop, []byte("--flagfile="+loop+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"unknown":         {"--maxmemory-policy=allkeys-lru"},
		"no flag":         {"dump"},
		"no value":        {"--port"},
		"no port":         {"--port=x"},
		"no such file":    {"--flagfile=/does/not/exist"},
		"endless":         {"--flagfile=" + loop},
		"TLS, nobody's":   {"--tls", "--tls_key_file=k", "--tls_cert_file=c"},
		"TLS without key": {"--tls", "--requirepass=x"},
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := parseFlags(args, nil); !errors.Is(err, errFlags) {
				t.Errorf("parsed %v, %v", s, err)
			}
		})
	}
}

func TestInfoIsDragonflys(t *testing.T) {
	const master = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n\r\n# Replication\r\nrole:master\r\nconnected_slaves:1\r\n" +
		"slave0:ip=10.0.0.2,port=6379,state=online,offset=100,lag=0,type=replica\r\nmaster_failover_state:no-failover\r\nmaster_replid:abc\r\nmaster_repl_offset:142\r\n\r\n# CPU\r\nused_cpu_sys:1\r\n"
	got := dragonflyInfo(master)
	for _, want := range []string{"dragonfly_version:", "slave0:ip=10.0.0.2,port=6379,state=online,lag=42\r\n", "\r\n\r\n# CPU\r\nused_cpu_sys:1"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	for _, bad := range []string{"valkey", "master_repl_offset", "failover_state"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q is in %q", bad, got)
		}
	}
}

func TestSizes(t *testing.T) {
	for in, want := range map[string]string{"512mb": "536870912", "1G": "1073741824", "64MiB": "67108864", "1073741824": "1073741824", "1.5k": "1536"} {
		if got, err := size(in); err != nil || got != want {
			t.Errorf("size(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	if _, err := size("lots"); !errors.Is(err, errFlags) {
		t.Errorf("lots: %v", err)
	}
}
