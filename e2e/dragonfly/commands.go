// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/mysql-mfg/mfg/e2e/resp"
)

// version is what INFO says; the real one says its own.
const version = "df-v1.34.0"

// plan tells what is sent to the child for a command, and what becomes of the reply.
func (s *session) plan(args []string) ([]string, question) {
	name, sub := strings.ToUpper(args[0]), ""
	if len(args) > 1 {
		sub = strings.ToUpper(args[1])
	}
	switch name {
	case "INFO":
		return args, question{change: text(dragonflyInfo)}
	case "ROLE":
		return args, question{change: dragonflyRole}
	case "REPLTAKEOVER":
		return instead(func() []byte { return s.proxy.takeOver(args[1:]) })
	case "DFLY":
		return instead(func() []byte { return s.proxy.answerReplica(args[1:]) })
	case "FAILOVER":
		return instead(func() []byte { return failed("unknown command `FAILOVER`") })
	case "PSYNC", "SYNC":
		return args, question{stream: true, replica: true}
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR":
		return args, question{stream: true}
	case "REPLCONF":
		// The child sees the proxy only. Who its replicas are, the proxy tells it.
		if host, _, err := net.SplitHostPort(s.client.RemoteAddr().String()); err == nil && sub == "LISTENING-PORT" && len(args) == 3 {
			return append(slices.Clone(args), "ip-address", host), question{}
		}
	case "COMMAND":
		if sub == "INFO" && len(args) == 3 && strings.EqualFold(args[2], "REPLTAKEOVER") {
			return instead(func() []byte {
				return []byte("*1\r\n*6\r\n$12\r\nREPLTAKEOVER\r\n:-2\r\n*1\r\n+admin\r\n:0\r\n:0\r\n:0\r\n")
			})
		}
	case "CLIENT":
		return planClient(sub, args)
	case "CONFIG":
		if sub == "SET" {
			return s.planConfigSet(args)
		}
	}
	return args, question{}
}

// instead answers a command that the child does not get. It gets a PING, whose reply tells whether this client may say anything.
func instead(answer func() []byte) ([]string, question) {
	return []string{"PING"}, question{change: func(raw []byte) []byte {
		if bytes.HasPrefix(raw, []byte("-")) {
			return raw
		}
		return answer()
	}}
}

func failed(format string, args ...any) []byte {
	return []byte("-ERR " + strings.NewReplacer("\r", " ", "\n", " ").Replace(fmt.Sprintf(format, args...)) + "\r\n")
}

// planClient takes the forms of CLIENT KILL that Dragonfly knows: one address, or one of ADDR, LADDR and ID.
func planClient(sub string, args []string) ([]string, question) {
	switch {
	case sub == "LIST":
		// Dragonfly's list has no flags: its own connections are told apart by their names.
		return args, question{change: text(func(list string) string { return withoutField(list, "flags") })}
	case sub != "KILL" || len(args) == 3:
	case len(args) != 4 || !slices.Contains([]string{"ADDR", "LADDR", "ID"}, strings.ToUpper(args[2])):
		return instead(func() []byte { return failed("syntax error") })
	}
	return args, question{}
}

func withoutField(list, field string) string {
	var out strings.Builder
	for l := range strings.Lines(list) {
		words := slices.DeleteFunc(strings.Split(l, " "), func(w string) bool { return strings.HasPrefix(w, field+"=") })
		out.WriteString(strings.Join(words, " "))
	}
	return out.String()
}

// planConfigSet lets through what Dragonfly can change while it runs, of what the child knows.
func (s *session) planConfigSet(args []string) ([]string, question) {
	if len(args) == 4 {
		switch name := strings.ReplaceAll(strings.ToLower(args[2]), "-", "_"); name {
		case "requirepass", "masterauth", "masteruser", "maxclients", "timeout":
			return []string{"CONFIG", "SET", name, args[3]}, question{}
		case "maxmemory":
			if n, err := size(args[3]); err == nil {
				return []string{"CONFIG", "SET", "maxmemory", n}, question{}
			}
		case "tls":
			if s.proxy.settings.on("tls") && strings.EqualFold(args[3], "true") {
				return instead(s.proxy.answerReread)
			}
		case "tls_cert_file", "tls_key_file":
			// What it is set to counts once tls is set; here it cannot become another file.
			if args[3] == s.proxy.settings[name] {
				return instead(func() []byte { return []byte("+OK\r\n") })
			}
		}
	}
	return instead(func() []byte {
		return failed("CONFIG SET failed (possibly related to argument '%s')", strings.Join(args[2:3], ""))
	})
}

func (p *proxy) answerReread() []byte {
	if err := p.readCertificates(); err != nil {
		return failed("CONFIG SET failed (possibly related to argument 'tls')")
	}
	return []byte("+OK\r\n")
}

// text makes a change of a reply's text out of a change of the text, in the protocol's versions 2 and 3.
func text(change func(string) string) func([]byte) []byte {
	return func(raw []byte) []byte {
		if len(raw) == 0 || raw[0] != '$' && raw[0] != '=' {
			return raw
		}
		_, body, ok := bytes.Cut(raw, []byte("\r\n"))
		if !ok || len(body) < 2 {
			return raw
		}
		kind, content, format := raw[0], string(body[:len(body)-2]), ""
		if kind == '=' {
			format, content, _ = strings.Cut(content, ":")
			format += ":"
		}
		content = format + change(content)
		return fmt.Appendf(nil, "%c%d\r\n%s\r\n", kind, len(content), content)
	}
}

// dragonflyInfo makes Dragonfly's INFO of Valkey's.
func dragonflyInfo(info string) string {
	var out strings.Builder
	fields := resp.Section(info)
	replication := false
	for l := range strings.Lines(info) {
		trimmed := strings.TrimSpace(l)
		if strings.HasPrefix(trimmed, "#") {
			replication = trimmed == "# Replication"
		}
		switch {
		case strings.HasPrefix(trimmed, "# "):
			out.WriteString(l)
			if replication {
				out.WriteString(replicationInfo(fields))
			}
		case replication, strings.HasPrefix(trimmed, "valkey_version:"), strings.HasPrefix(trimmed, "server_name:"):
		case strings.HasPrefix(trimmed, "run_id:"):
			// Dragonfly has no name for its process. What asks in the lab for writers still has to tell one from the next.
			out.WriteString("lab_" + l)
		case strings.HasPrefix(trimmed, "redis_version:"):
			out.WriteString(l + "dragonfly_version:" + version + "\r\n")
		default:
			out.WriteString(l)
		}
	}
	return out.String()
}

// replicationInfo is the section as Dragonfly writes it (with info_replication_valkey_compatible, its default).
func replicationInfo(f map[string]string) string {
	var out strings.Builder
	put := func(name, value string) { out.WriteString(name + ":" + value + "\r\n") }
	put("role", f["role"])
	if f["role"] == "master" {
		put("connected_slaves", f["connected_slaves"])
		for i := 0; ; i++ {
			replica, ok := f[fmt.Sprintf("slave%d", i)]
			if !ok {
				break
			}
			put(fmt.Sprintf("slave%d", i), replicaInfo(replica, f["master_repl_offset"]))
		}
		put("master_replid", f["master_replid"])
	} else {
		for _, name := range []string{
			"master_host", "master_port", "master_link_status", "master_last_io_seconds_ago", "master_sync_in_progress", "master_replid",
		} {
			put(name, f[name])
		}
		if f["master_link_status"] == "up" {
			put("slave_repl_offset", f["slave_repl_offset"])
		}
		put("slave_priority", f["slave_priority"])
		put("slave_read_only", "1")
	}
	// The empty line before the next section was the old section's.
	return out.String() + "\r\n"
}

// replicaInfo makes Dragonfly's line of one replica of Valkey's: the lag is in changes, not in seconds.
func replicaInfo(line, masterOffset string) string {
	f := map[string]string{}
	for pair := range strings.SplitSeq(line, ",") {
		name, value, _ := strings.Cut(pair, "=")
		f[name] = value
	}
	state := "full_sync"
	if f["state"] == "online" {
		state = "online"
	}
	have, _ := strconv.ParseInt(f["offset"], 10, 64)
	want, _ := strconv.ParseInt(masterOffset, 10, 64)
	return fmt.Sprintf("ip=%s,port=%s,state=%s,lag=%d", f["ip"], f["port"], state, max(want-have, 0))
}

// dragonflyRole makes Dragonfly's ROLE of Valkey's: without offsets, and with its own words for states.
func dragonflyRole(raw []byte) []byte {
	v, err := resp.Read(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil || v.Kind != '*' || len(v.Items) < 3 {
		return raw
	}
	if v.Items[0].Text == "master" {
		out := fmt.Appendf(nil, "*2\r\n$6\r\nmaster\r\n*%d\r\n", len(v.Items[2].Items))
		for _, replica := range v.Items[2].Items {
			out = append(out, "*3\r\n"...)
			for _, word := range []string{replica.Items[0].Text, replica.Items[1].Text, "online"} {
				out = resp.AppendBulk(out, word)
			}
		}
		return out
	}
	if len(v.Items) < 4 {
		return raw
	}
	states := map[string]string{"connected": "online", "sync": "full_sync", "connecting": "connecting", "connect": "connecting"}
	state := states[v.Items[3].Text]
	if state == "" {
		state = "preparation"
	}
	out := []byte("*4\r\n")
	for _, word := range []string{"slave", v.Items[1].Text, strconv.FormatInt(v.Items[2].Int, 10), state} {
		out = resp.AppendBulk(out, word)
	}
	return out
}
