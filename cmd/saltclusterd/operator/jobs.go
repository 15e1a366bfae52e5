package operator

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/fsync/jobs"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// JobCache is the job cache of this node and, through it, those of the others.
type JobCache interface {
	// List returns the newest jobs, and the members that did not answer.
	List(ctx context.Context, n int) (list []jobs.Summary, silent []node.ID)
	Find(ctx context.Context, jid string) (jobs.Job, error)
}

// Jobs implements admin.JobKeeper for a node that may be no member.
type Jobs struct {
	Of     func() (JobCache, error) // of the running membership
	Logger *slog.Logger
}

// ListJobs implements admin.JobKeeper.
func (v Jobs) ListJobs(ctx context.Context, n int) (adminapi.JobList, error) {
	cache, err := v.Of()
	if err != nil {
		return adminapi.JobList{}, err
	}
	var out adminapi.JobList
	list, silent := cache.List(ctx, n)
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
func (v Jobs) ShowJob(ctx context.Context, jid string) (adminapi.Job, error) {
	cache, err := v.Of()
	if err != nil {
		return adminapi.Job{}, err
	}
	job, err := cache.Find(ctx, jid)
	if e, ok := errors.AsType[*jobs.SilentError](err); ok {
		v.Logger.Info("job not found", "jid", jid, "err", e.Err)
		return adminapi.Job{}, adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl members; ask again when they are back",
			"no node that answers knows the job %s; not asked: %s", jid, wording.Enumerate(node.Strings(e.Nodes)))
	}
	if errors.Is(err, jobs.ErrUnknown) {
		return adminapi.Job{}, adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl jobs list", "%v: %s", err, jid)
	}
	if err != nil {
		return adminapi.Job{}, err
	}
	return readableJob(job), nil
}

// readableJob decodes a job for people and JSON.
func readableJob(job jobs.Job) adminapi.Job {
	out := adminapi.Job{JID: job.JID, Node: string(job.From), Cut: job.Cut, Returns: map[string]adminapi.JobReturn{}}
	load, _ := decodeMsgpack(job.Heads[".load.p"]).(map[string]any)
	out.Function, out.Target, out.User = load["fun"], load["tgt"], load["user"]
	out.TargetType, out.Arguments = load["tgt_type"], load["arg"]
	out.Minions = decodeMsgpack(job.Heads[".minions.p"])
	if end := job.Heads["endtime"]; len(end) > 0 {
		out.EndTime = string(end)
	}
	for id, r := range job.Returns {
		in, _ := decodeMsgpack(r.Data).(map[string]any)
		row := adminapi.JobReturn{Return: in["return"], Retcode: in["retcode"], Success: in["success"]}
		row.Out = decodeMsgpack(r.Out)
		out.Returns[id] = row
		if ran, ok := in["return"].(map[string]any); ok && out.Function == nil { // a runner's
			out.Function, out.Arguments, out.User = ran["fun"], ran["fun_args"], ran["user"]
		}
	}
	return out
}

// decodeMsgpack decodes msgpack for JSON. It returns nil for anything else.
func decodeMsgpack(raw []byte) any {
	v, _, err := decodeValue(raw, 0)
	if err != nil {
		return nil
	}
	return v
}

// maxNesting is deeper than any return that people read.
const maxNesting = 200

var errNesting = errors.New("nested too deeply")

// decodeValue decodes one value. Keys become text; bytes that are not UTF-8 become base64.
func decodeValue(raw []byte, depth int) (v any, rest []byte, err error) {
	if depth > maxNesting {
		return nil, nil, errNesting
	}
	switch msgp.NextType(raw) {
	case msgp.MapType:
		n, rest, err := msgp.ReadMapHeaderBytes(raw)
		out := map[string]any{}
		for ; n > 0 && err == nil; n-- {
			var key, val any
			if key, rest, err = decodeValue(rest, depth+1); err == nil {
				val, rest, err = decodeValue(rest, depth+1)
				out[keyText(key)] = val
			}
		}
		return out, rest, err
	case msgp.ArrayType:
		n, rest, err := msgp.ReadArrayHeaderBytes(raw)
		out := []any{}
		for ; n > 0 && err == nil; n-- {
			var val any
			val, rest, err = decodeValue(rest, depth+1)
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
		return "(a Python value that JSON does not have)", rest, err
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
