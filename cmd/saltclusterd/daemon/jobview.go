package daemon

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/fsync/jobs"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// ListJobs implements admin.JobKeeper.
func (d *Daemon) ListJobs(ctx context.Context, n int) (adminapi.JobList, error) {
	s, err := d.service()
	if err != nil {
		return adminapi.JobList{}, err
	}
	var out adminapi.JobList
	list, silent := s.cache.List(ctx, n)
	for _, j := range list {
		row := adminapi.JobRow{
			JID: j.JID, Function: j.Function, Target: j.Target, User: j.User, Minions: j.Minions, Returned: j.Returned,
		}
		for _, id := range j.Nodes {
			row.Nodes = append(row.Nodes, string(id))
		}
		out.Jobs = append(out.Jobs, row)
	}
	for _, id := range silent {
		out.Missing = append(out.Missing, string(id))
	}
	return out, nil
}

// ShowJob implements admin.JobKeeper.
func (d *Daemon) ShowJob(ctx context.Context, jid string) (adminapi.Job, error) {
	s, err := d.service()
	if err != nil {
		return adminapi.Job{}, err
	}
	job, err := s.cache.Find(ctx, jid)
	if e, ok := errors.AsType[*jobs.SilentError](err); ok {
		s.m.log.Info("job not found", "jid", jid, "err", e.Err)
		return adminapi.Job{}, adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl members; ask again when they are back",
			"no node that answers knows the job %s; not asked: %s", jid, enumerate(node.Strings(e.Nodes)))
	}
	if errors.Is(err, jobs.ErrUnknown) {
		return adminapi.Job{}, adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl jobs list", "%v: %s", err, jid)
	}
	if err != nil {
		return adminapi.Job{}, err
	}
	return viewJob(job), nil
}

// viewJob makes of a job what people and JSON can read.
func viewJob(job jobs.Job) adminapi.Job {
	out := adminapi.Job{JID: job.JID, Node: string(job.From), Cut: job.Cut, Returns: map[string]adminapi.JobReturn{}}
	load, _ := plainBytes(job.Heads[".load.p"]).(map[string]any)
	out.Function, out.Target, out.User = load["fun"], load["tgt"], load["user"]
	out.TargetType, out.Arguments = load["tgt_type"], load["arg"]
	out.Minions = plainBytes(job.Heads[".minions.p"])
	if end := job.Heads["endtime"]; len(end) > 0 {
		out.EndTime = string(end)
	}
	for id, r := range job.Returns {
		in, _ := plainBytes(r.Data).(map[string]any)
		row := adminapi.JobReturn{Return: in["return"], Retcode: in["retcode"], Success: in["success"]}
		row.Out = plainBytes(r.Out)
		out.Returns[id] = row
		if ran, ok := in["return"].(map[string]any); ok && out.Function == nil { // a runner's
			out.Function, out.Arguments, out.User = ran["fun"], ran["fun_args"], ran["user"]
		}
	}
	return out
}

// plainBytes decodes msgpack for JSON; nil when it is none.
func plainBytes(raw []byte) any {
	v, _, err := plainValue(raw, 0)
	if err != nil {
		return nil
	}
	return v
}

// maxNesting is deeper than any return that people read.
const maxNesting = 200

var errNesting = errors.New("nested too deeply")

// plainValue decodes one value. Keys that are no text are written as text, bytes that are none in base64.
func plainValue(raw []byte, depth int) (v any, rest []byte, err error) {
	if depth > maxNesting {
		return nil, nil, errNesting
	}
	switch msgp.NextType(raw) {
	case msgp.MapType:
		n, rest, err := msgp.ReadMapHeaderBytes(raw)
		out := map[string]any{}
		for ; n > 0 && err == nil; n-- {
			var key, val any
			if key, rest, err = plainValue(rest, depth+1); err == nil {
				val, rest, err = plainValue(rest, depth+1)
				out[keyText(key)] = val
			}
		}
		return out, rest, err
	case msgp.ArrayType:
		n, rest, err := msgp.ReadArrayHeaderBytes(raw)
		out := []any{}
		for ; n > 0 && err == nil; n-- {
			var val any
			val, rest, err = plainValue(rest, depth+1)
			out = append(out, val)
		}
		return out, rest, err
	case msgp.BinType:
		b, rest, err := msgp.ReadBytesZC(raw)
		if utf8.Valid(b) {
			return string(b), rest, err
		}
		return base64.StdEncoding.EncodeToString(b), rest, err
	case msgp.ExtensionType:
		rest, err := msgp.Skip(raw)
		return "(a value of Python's own)", rest, err
	case msgp.Float32Type, msgp.Float64Type:
		v, rest, err := msgp.ReadIntfBytes(raw)
		if f := fmt.Sprint(v); f == "NaN" || f == "+Inf" || f == "-Inf" {
			return f, rest, err
		}
		return v, rest, err
	default:
		return msgp.ReadIntfBytes(raw)
	}
}

func keyText(key any) string {
	switch k := key.(type) {
	case string:
		return k
	case int64:
		return strconv.FormatInt(k, 10)
	default:
		return fmt.Sprint(k)
	}
}
