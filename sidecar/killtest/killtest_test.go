package killtest_test

import (
	"fmt"
	"strings"
	"testing"

	"saltclusterd/sidecar/killtest"
)

func TestChild(t *testing.T) {
	told := killtest.Child(t)
	for i := 0; ; i++ {
		fmt.Println(told, i)
		fmt.Println("something else")
	}
}

func TestKill(t *testing.T) {
	n, others := 0, 0
	killtest.Kill(t, "TestChild", "promise", 3, 10, func(text string) bool {
		if text == "something else" {
			others++
			return false
		}
		if text != fmt.Sprint("promise ", n) && strings.HasPrefix(text, "promise ") { // the last may be cut off
			t.Errorf("line %d: %s", n, text)
		}
		n++
		return true
	})
	if n < 3 || others < 2 {
		t.Errorf("%d and %d lines", n, others)
	}
}
