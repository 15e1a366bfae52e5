package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds a configuration file, in bytes.
const maxFile = 1 << 20

// DropInDir returns the directory whose *.conf files are read after path:
// path without its extension, and ".d".
func DropInDir(path string) string {
	switch ext := filepath.Ext(path); ext {
	case ".conf", ".yaml", ".yml":
		path = strings.TrimSuffix(path, ext)
	}
	return path + ".d"
}

// listFiles returns path and its drop-ins in the order they are read: by name.
func listFiles(path string) ([]string, Findings) {
	dir := DropInDir(path)
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return []string{path}, Findings{unreadableFile(dir, err)}
	}
	files := []string{path}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".conf") && !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, nil
}

// mergeFile reads one file over what c holds.
func (c *Config) mergeFile(file string) Findings {
	data, mode, err := readFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Findings{missingFile(file)}
	}
	if err != nil {
		return Findings{unreadableFile(file, err)}
	}
	c.files = append(c.files, file)
	var findings Findings
	if mode&0o002 != 0 {
		findings = append(findings, Finding{File: file, Message: "may be written by everyone", Hint: "chmod o-w " + file})
	}
	root, finding := parseFile(file, data)
	if finding != nil {
		return append(findings, *finding)
	}
	if root == nil {
		return findings
	}
	return append(findings, c.mergeOptions(file, mode, root)...)
}

func missingFile(file string) Finding {
	if target, err := os.Readlink(file); err == nil {
		return Finding{File: file, Message: fmt.Sprintf("is a link to %s, which does not exist", target),
			Hint: "remove the link, or put the file there"}
	}
	return Finding{File: file, Message: "does not exist",
		Hint: "the package brings a commented one; saltclusterctl config default prints it"}
}

func (c *Config) mergeOptions(file string, mode fs.FileMode, root *yaml.Node) Findings {
	var findings Findings
	table := map[string]Option{}
	for _, o := range Options() {
		table[o.Name] = o
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		say := func(line int, msg, hint string) {
			findings = append(findings, Finding{File: file, Line: line, Option: key.Value, Message: msg, Hint: hint})
		}
		o, known := table[key.Value]
		if !known {
			msg, hint := unknownOption(key.Value)
			say(key.Line, msg, hint)
			continue
		}
		if first, twice := seen[o.Name]; twice {
			say(key.Line, fmt.Sprintf("is given twice, first on line %d", first), "")
			continue
		}
		seen[o.Name] = key.Line
		if m := o.setValue(c, value); m != nil {
			say(m.node.Line, m.msg, m.hint)
			c.places[o.Name] = place{file: file, line: key.Line, broken: true}
			continue
		}
		if _, isSecret := o.field(c).(*Secret); isSecret && mode&0o004 != 0 {
			say(key.Line, "is in a file that everyone may read", "chmod o-rwx "+file)
		}
		c.places[o.Name] = place{file: file, line: key.Line}
	}
	return findings
}

// parseFile returns the top-level map, nil for an empty file.
func parseFile(file string, data []byte) (*yaml.Node, *Finding) {
	var doc, more yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntaxFinding(file, data, err)
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, &Finding{File: file, Line: more.Line, Message: "has a second YAML document", Hint: "remove the --- line"}
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, &Finding{File: file, Line: root.Line, Message: "is not a list of options", Hint: "write option: value"}
	}
	return root, nil
}

var (
	yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	// yamlParser is what the library's parser says, unlike its scanner.
	yamlParser = regexp.MustCompile(`did not find expected (?:<|'-' indicator|key$|node content|',' or)|found (?:undefined|duplicate|incompatible) `)
	yamlBlock  = regexp.MustCompile(`did not find expected (?:key$|'-' indicator)`)
	yamlTop    = regexp.MustCompile(`^(?:[ \t]*(?:#.*|---.*)?\n)*`) // before the first option
	yamlTab    = regexp.MustCompile(`(?m)^ *\t`)
	yamlQuoted = regexp.MustCompile(`'[^']{3,}'`)
)

// syntaxFinding turns the YAML library's "yaml: line 3: did not find ..." into a
// finding. What it quotes is left out: an unquoted secret that begins with '*'
// is an unknown anchor to it.
func syntaxFinding(file string, data []byte, err error) *Finding {
	text := yamlQuoted.ReplaceAllString(yamlLine.ReplaceAllString(err.Error(), ""), "'...'")
	return &Finding{File: file, Line: syntaxLine(data), Message: "is not valid YAML: " + text}
}

// syntaxLine finds the line of a syntax error, 0 when the library knows none. The library names where the enclosing
// block begins, unless that is the first line, and then where it gave up, unless that is the first line; so the first
// line is chosen for it.
func syntaxLine(data []byte) int {
	line, text := libraryLine(append([]byte("\n"), data...)) // where a quote, a bracket or a token begins says most
	switch {
	case text == "":
		return 0
	case strings.Contains(text, "found a tab character"):
		if at := yamlTab.FindIndex(data); at != nil {
			return 1 + strings.Count(string(data[:at[1]]), "\n")
		}
	case yamlBlock.MatchString(text): // where it begins says nothing: most often it is the whole file
		top := yamlTop.Find(data)
		line, _ = libraryLine(data[len(top):])
		return line + strings.Count(string(top), "\n")
	}
	return max(line-1, 0)
}

// libraryLine is the line that the library means, and what it says. Its parser, unlike its scanner, counts from 0.
func libraryLine(data []byte) (line int, text string) {
	var doc yaml.Node
	err := yaml.Unmarshal(data, &doc)
	if err == nil {
		return 0, ""
	}
	text = err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
	}
	if yamlParser.MatchString(text) {
		line++
	}
	return line, text
}

// readFile reads a whole regular file and its mode.
func readFile(file string) ([]byte, fs.FileMode, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO must not hold us up
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return data, info.Mode(), err
}

// errorReason strips the path off an *fs.PathError; the finding names it already.
func errorReason(err error) string { return withoutPath(err).Error() }

// withoutPath is an error about a file that is named already.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

func unreadableFile(path string, err error) Finding {
	return Finding{File: path, Message: "cannot be read: " + errorReason(err), Denied: errors.Is(err, fs.ErrPermission)}
}
