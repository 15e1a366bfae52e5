package chaos

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

func TestMemoryLine(t *testing.T) {
	l := memoryLine("m1", []int{10, 50, 52, 54, 60, 61, 100, 62}, 120)
	if l.Start != 10 || l.Early != 54 || l.Late != 62 || l.Peak != 120 || l.Samples != 8 {
		t.Errorf("%+v", l)
	}
	if l := memoryLine("m1", nil, 0); l.Samples != 0 {
		t.Errorf("%+v", l)
	}
}

func TestStatusMiB(t *testing.T) {
	if n := statusMiB("Name:\tx\nVmHWM:\t  204800 kB\nVmRSS:\t  102400 kB\n", "VmRSS:"); n != 100 {
		t.Errorf("%d MiB", n)
	}
}

func TestMeterReadsMetrics(t *testing.T) {
	m := &meter{high: map[string]float64{}}
	text := "# HELP x y\nsaltcluster_edge_held_bytes{edge=\"req\"} %\nsaltcluster_fanout_missed_records_total{peer=\"m2\"} 3\nother 7\n"
	for _, v := range []string{"5", "9", "2"} {
		m.read("m1", strings.NewReader(strings.ReplaceAll(text, "%", v)))
	}
	if m.high[`saltcluster_edge_held_bytes{edge="req"}`] != 9 ||
		m.high[`saltcluster_fanout_missed_records_total{peer="m2"} on m1`] != 3 || len(m.high) != 2 {
		t.Errorf("%v", m.high)
	}
}

func TestTailGivesWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte("one\ntwo\nthr"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	tail(ctx, path, func(line []byte) {
		switch got = append(got, string(line)); len(got) {
		case 2:
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = f.WriteString("ee\n")
			f.Close()
		case 3:
			cancel()
		}
	})
	if s := strings.Join(got, ","); s != "one,two,three" {
		t.Errorf("%s", s)
	}
}
