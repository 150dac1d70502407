// Oracle puts CEL expressions through kube-apiserver's own code and writes what it says.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	_ "time/tzdata" // where the system has no time zones
)

// root is the directory of corpus, fixtures and schemas.
var root = "."

const usage = `usage: oracle [-root DIR] MODE
  serve                answer each line of standard input
  golden OUT [BASE]    write the golden files; with BASE, the golden files of the base minor, only what differs
  openapi FILE         write the schemas of the built-in kinds, compressed
  types DISCOVERY FILE write the kinds of a list of discovery and their Go types, compressed
  objects DISCOVERY DIR SEED COUNT FILE
                       write what the API server makes of each object of DIR/*.yaml, and of COUNT random ones per kind
  plugins KUBERNETES APISERVER FILE
                       write the admission plugins that are on by default, by the sources of these modules
  mutants DISCOVERY DIR FILE [BASE]
                       write what the API server says of each object of DIR/*.yaml and of each with one change,
                       compressed; with BASE, the file of the base minor, only what differs
  definitions DIR FILE [BASE]
                       write what the API server says of each definition of DIR/*.yaml and of each with one change,
                       compressed; with BASE, the file of the base minor, only what differs
  rules DIR FILE       write what the API server says of the definitions of DIR/*.yaml and of objects of their kinds,
                       compressed
  custom SEED COUNT FILE [BASE]
                       write what the API server says of objects of so many random definitions, compressed; with BASE,
                       the file of the base minor, only what differs
  formats SEED COUNT FILE
                       write which texts have each format of strings, and their values in rules, compressed
  texts OUT FILE...    write what kubectl reads in each {"id", "text"} of the lines of files, compressed
  read                 the same, from standard input to standard output
  celspec FILE         answer the tests of the CEL specification, into a file
  answer               the same, with each request beside its answer, as in the golden files
  bench                measure each request on standard input: {"id", "compile", "evaluate"} in nanoseconds
  generate SEED COUNT  write requests for differential tests, the same for the same seed
  versions             write which modules answer
`

func main() {
	flag.StringVar(&root, "root", root, "directory of corpus, fixtures and schemas")
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	flag.Parse()
	if err := run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	mode := ""
	if len(args) > 0 {
		mode = args[0]
	}
	switch {
	case mode == "versions" && len(args) == 1:
		_, err := os.Stdout.Write(versions())
		return err
	case mode == "serve" && len(args) == 1:
		o, err := newOracle()
		if err != nil {
			return err
		}
		return serve(o, os.Stdin, os.Stdout)
	case (mode == "answer" || mode == "bench") && len(args) == 1:
		o, err := newOracle()
		if err != nil {
			return err
		}
		if mode == "bench" {
			return bench(o, os.Stdin, os.Stdout)
		}
		o.reorder = true
		return answerAll(o, os.Stdin, os.Stdout)
	case mode == "generate" && len(args) == 3:
		seed, err := strconv.ParseUint(args[1], 10, 32)
		if err != nil {
			return err
		}
		count, err := strconv.ParseUint(args[2], 10, 31)
		if err != nil {
			return err
		}
		o, err := newOracle()
		if err != nil {
			return err
		}
		return generate(o, seed, int(count), os.Stdout)
	case mode == "celspec" && len(args) == 2:
		o, err := newOracle()
		if err != nil {
			return err
		}
		return writeSpec(o, args[1])
	case mode == "types" && len(args) == 3:
		return writeTypes(args[1], args[2])
	case mode == "objects" && len(args) == 6:
		seed, err := strconv.ParseUint(args[3], 10, 32)
		if err != nil {
			return err
		}
		count, err := strconv.ParseUint(args[4], 10, 16)
		if err != nil {
			return err
		}
		return writeObjects(args[1], args[2], seed, int(count), args[5])
	case mode == "plugins" && len(args) == 4:
		return writePlugins(args[1], args[2], args[3])
	case mode == "mutants" && (len(args) == 4 || len(args) == 5):
		base := ""
		if len(args) == 5 {
			base = args[4]
		}
		return writeMutants(args[1], args[2], args[3], base)
	case mode == "definitions" && (len(args) == 3 || len(args) == 4):
		base := ""
		if len(args) == 4 {
			base = args[3]
		}
		return writeDefinitions(args[1], args[2], base)
	case mode == "rules" && len(args) == 3:
		return writeRules(args[1], args[2])
	case mode == "custom" && (len(args) == 4 || len(args) == 5), mode == "formats" && len(args) == 4:
		seed, err := strconv.ParseUint(args[1], 10, 32)
		if err != nil {
			return err
		}
		count, err := strconv.ParseUint(args[2], 10, 31)
		if err != nil {
			return err
		}
		if mode == "formats" {
			return writeFormats(seed, int(count), args[3])
		}
		base := ""
		if len(args) == 5 {
			base = args[4]
		}
		return writeCustoms(seed, int(count), args[3], base)
	case mode == "texts" && len(args) > 2:
		return writeReadings(args[1], args[2:])
	case mode == "read" && len(args) == 1:
		return readTexts(os.Stdin, os.Stdout)
	case mode == "openapi" && len(args) == 2:
		return writeOpenAPI(args[1])
	case mode == "golden" && (len(args) == 2 || len(args) == 3):
		o, err := newOracle()
		if err != nil {
			return err
		}
		base := ""
		if len(args) == 3 {
			base = args[2]
		}
		return writeGolden(o, base, args[1])
	}
	flag.Usage()
	return fmt.Errorf("cannot do %q", strings.Join(args, " "))
}

// serve answers line by line. A line that is no request is answered with `{"failure": ...}`.
func serve(o *oracle, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		r, err := parseRequest(lines.Bytes())
		var a answer
		if err == nil {
			a, err = o.ask(r)
		}
		var reply any = a
		if err != nil {
			reply = map[string]string{"id": r.ID, "failure": err.Error()}
		}
		line, err := compact(reply)
		if err != nil {
			return err
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return lines.Err()
}
