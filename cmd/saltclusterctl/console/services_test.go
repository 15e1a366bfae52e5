package console

import (
	"flag"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/integration/require"
)

// Lines, tables, errors and all formats have the commands of this host.
func TestScreen_Services(t *testing.T) {
	var out, errs strings.Builder
	e := &Env{Stdout: &out, Stderr: &errs, services: wording.Services("runit")}
	s := e.NewScreen()
	s.Wrapped("-> ", "%s", "systemctl start salt-master")
	s.PrintTable("", nil, [][]Cell{{Txt("->"), Txt("systemctl start salt-master")}})
	e.PrintError(Refusedf("systemctl start salt-master", "it does not run"))
	answer := struct {
		Hint string `json:"hint"`
	}{"systemctl start salt-master"}
	texts := []string{s.String(), errs.String()}
	for _, format := range Formats[1:] {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		flags.String("out", format, "")
		out.Reset()
		require.NoError(t, e.PrintValue(cli.NewContext(nil, flags, nil), answer, nil))
		texts = append(texts, out.String())
	}
	for _, text := range texts {
		if strings.Contains(text, "systemctl") || !strings.Contains(text, "sv up salt-master") {
			t.Errorf("%s", text)
		}
	}
}
