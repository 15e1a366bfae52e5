package jobcache

import (
	"strings"

	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/saltwire"
)

// reports says whether events are fired for a function's failures (salt/utils/event.py:SUB_EVENT).
func reports(fun string) bool { return fun == "state.highstate" || fun == "state.sls" }

// maxFailed is how many failed states of one return are reported here. Their events hold up those of other jobs, which
// a master's several workers would fire beside them.
const maxFailed = 2000

// planFailures is salt/utils/event.py:fire_ret_load: an event for each failed state. It leaves its marks in the return
// (retcode in each state, and what the events carry in the failed ones), which therefore are in return.p too.
func (p *planner) planFailures(d *fields, job Job) (changed bool, err error) {
	retcode, _ := d.Get("retcode")
	rawFun, _ := d.Get("fun")
	if !saltvalue.Truth(retcode) || !saltvalue.Truth(rawFun) {
		return false, nil
	}
	if list, ok := saltvalue.ParseList(rawFun); ok {
		return false, manyFuns(list, retcode)
	}
	fun, ok := saltvalue.Text(rawFun)
	if !ok || !reports(fun) {
		return false, nil
	}
	ret, _ := d.Get("return")
	if list, is := saltvalue.ParseList(ret); is {
		for _, e := range list {
			if _, ok := saltvalue.Text(e); !ok {
				return false, needs("a failed %s whose return is a list of values other than text", fun)
			}
		}
	}
	states, ok := saltvalue.ParseFields(ret)
	if !ok {
		return false, nil
	}
	user, _ := d.Get("user")
	f := failure{planner: p, job: job, fun: fun, retcode: retcode, user: user}
	for i := range states {
		goOn, err := f.planState(&states[i])
		if err != nil {
			return false, err
		}
		if !goOn {
			break
		}
	}
	*d = d.Set("return", states.Raw())
	return true, nil
}

// manyFuns leaves jobs of several functions to the master when one of them would be reported.
func manyFuns(funs [][]byte, retcode []byte) error {
	if !saltvalue.IsList(retcode) && !saltvalue.IsMap(retcode) {
		return needs("a return of several functions with one retcode")
	}
	for _, raw := range funs {
		if fun, ok := saltvalue.Text(raw); !ok || reports(fun) {
			return needs("a failed return of several functions with states among them")
		}
	}
	return nil
}

type failure struct {
	*planner
	job           Job
	fun           string
	retcode, user []byte
	failed        int
}

// planState handles one state of a return; goOn is false where Python's loop would end with an exception.
func (f *failure) planState(s *saltvalue.Field) (goOn bool, err error) {
	chunk, ok := saltvalue.ParseFields(s.Val)
	if !ok {
		return false, nil
	}
	chunk = chunk.Set("retcode", f.retcode)
	tag, ok := saltvalue.Text(s.Key)
	result, _ := chunk.Get("result")
	if ok && len(result) == 1 && result[0] == 0xc2 {
		if f.failed++; f.failed > maxFailed {
			return false, needs("a return with more than %d failed states", maxFailed)
		}
		parts := strings.Split(tag, "_|-")
		short := parts[0] + "." + parts[len(parts)-1]
		chunk = chunk.Set("_stamp", f.stamp)
		if err := f.planFire(short, chunk.Raw()); err != nil {
			return false, err
		}
		chunk = chunk.Set("jid", rawText(f.job.JID)).Set("id", rawText(f.job.Minion)).Set("success", rawFalse)
		chunk = chunk.Set("return", saltwire.AppendStr(nil, "Error: "+short)).Set("fun", rawText(f.fun))
		if f.user != nil {
			chunk = chunk.Set("user", f.user)
		}
		long := "salt/job/" + f.job.JID + "/sub/" + f.job.Minion + "/error/" + f.fun
		if err := f.planFire(long, chunk.Raw()); err != nil {
			return false, err
		}
	}
	s.Val = chunk.Raw()
	return ok, f.takeRoom(len(s.Val))
}
