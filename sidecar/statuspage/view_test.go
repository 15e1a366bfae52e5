package statuspage

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/sidecar/adminapi"
)

func TestSeries(t *testing.T) {
	values := []float64{0, 5}
	s := NewSeries([]Measure{{Name: "counted"}, {Name: "level", Level: true}}, func() []float64 { return values })
	at := time.Unix(1_700_000_000, 0)
	take := func(counted, level float64) {
		values = []float64{counted, level}
		s.Take(at)
		at = at.Add(Step)
	}
	take(10, 5)
	if l := s.Lines(); len(l) != 2 || len(l[0].Points) != 0 {
		t.Errorf("after the first: %+v", l)
	}
	take(10+Step.Seconds(), 7)
	take(3, 6) // another process counts from nothing
	values = nil
	s.Take(at)
	l := s.Lines()
	if want := [][]float64{{1, 0}, {7, 6}}; !reflect.DeepEqual([][]float64{l[0].Points, l[1].Points}, want) {
		t.Errorf("%+v", l)
	}
	for i := range 2 * steps {
		take(float64(i), 1)
	}
	if l := s.Lines(); len(l[0].Points) != steps {
		t.Errorf("%d points are remembered", len(l[0].Points))
	}
	var none *Series
	if none.Lines() != nil {
		t.Error("none has lines")
	}
}

func TestRingPicture(t *testing.T) {
	s := ringSlices([]string{"a", "b", "c"}, []float64{0.75, 0.25, 0})
	if s[0].Percent != "75.0 %" || s[2].Path != "" || s[0].Colour == s[1].Colour {
		t.Errorf("%+v", s)
	}
	if !strings.HasPrefix(s[0].Path, "M100.00 4.00 A96 96 0 1 1 4.00 100.00") ||
		!strings.Contains(s[1].Path, " 0 0 1 100.00 4.00") {
		t.Errorf("%s\n%s", s[0].Path, s[1].Path)
	}
	if all := ringSlices([]string{"a"}, []float64{1}); strings.Count(all[0].Path, "Z") != 2 {
		t.Errorf("a whole ring: %s", all[0].Path)
	}
}

func TestCurve(t *testing.T) {
	if c := curveOf(Line{}); c.Line != "" || !strings.Contains(c.Text, "no data yet") {
		t.Errorf("%+v", c)
	}
	c := curveOf(Line{Measure: Measure{Name: "x"}, Points: []float64{0, 4, 2}})
	if c.Now != "2/s" || c.Most != "4/s" ||
		!regexp.MustCompile(`^M236\.0 59\.0L238\.0 3\.0L240\.0 31\.0$`).MatchString(c.Line) {
		t.Errorf("%+v", c)
	}
	if c := curveOf(Line{Points: []float64{0, 0}}); strings.Contains(c.Line, "NaN") {
		t.Errorf("nothing at all: %s", c.Line)
	}
}

func TestAmounts(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 3: "3", 0.25: "0.25", 12.34: "12.3", 123.4: "123", 12345: "12k",
		math.Pi: "3.14"} {
		check.Equal(t, formatAmount(v), want, v)
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 59 * time.Second: "59 s", 61 * time.Minute: "1 h 01 min", 49 * time.Hour: "2 d 1 h",
		90 * time.Second: "1 min",
	} {
		check.Equal(t, formatAge(d), want, d)
	}
}

func TestVerdict(t *testing.T) {
	warn, fail := adminapi.Problem{Level: adminapi.LevelWarn}, adminapi.Problem{Level: adminapi.LevelFail}
	cluster := &adminapi.Cluster{ID: "c"}
	for _, c := range []struct {
		st            *adminapi.Status
		tone, verdict string
	}{
		{nil, "fail", "this node does not report its status"},
		{&adminapi.Status{}, "warn", "this node belongs to no cluster yet"},
		{&adminapi.Status{Removed: "m1 was removed"}, "fail", "m1 was removed"},
		{&adminapi.Status{Cluster: cluster}, "ok", "no problems"},
		{&adminapi.Status{Cluster: cluster, Problems: []adminapi.Problem{warn}}, "warn", "1 warning"},
		{&adminapi.Status{Cluster: cluster, Problems: []adminapi.Problem{warn, fail}}, "fail", "2 problems"},
	} {
		v := makeView(gathering{Status: c.st}, nil, time.Now())
		if v.Tone != c.tone || v.Verdict != c.verdict || len(v.Title) == 0 {
			t.Errorf("%+v: %s %q", c.st, v.Tone, v.Verdict)
		}
	}
}

func TestListsAreBounded(t *testing.T) {
	now := time.Now()
	p, heard := adminapi.Presence{}, adminapi.Protocols{}
	for i := range 100 {
		p.Absent = append(p.Absent, adminapi.PresentMinion{ID: fmt.Sprint("m", i),
			Seen: now.Add(-time.Duration(100-i) * time.Hour)})
		heard.Minions = append(heard.Minions, adminapi.MinionProtocol{ID: fmt.Sprint("m", i),
			Returned: &adminapi.MinionReturn{
				JID: now.UTC().Add(-time.Hour).Format(jobTime) + "000000", At: now.Add(-time.Duration(i) * time.Second),
			}})
	}
	v := makeView(gathering{Presence: &p, Protocols: &heard}, nil, now)
	if len(v.Minions.Gone) != listed || v.Minions.More != 80 || v.Minions.Gone[0].ID != "m99" {
		t.Errorf("%d, %d more, first %+v", len(v.Minions.Gone), v.Minions.More, v.Minions.Gone[0])
	}
	if len(v.Minions.Slow) != listed/2 || v.Minions.Slow[0].ID != "m0" {
		t.Errorf("slow: %+v", v.Minions.Slow)
	}
}
