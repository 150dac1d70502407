// Texts writes in which words the Pod Security Standards tell what is wrong with pods: for each pod on standard input, a
// JSON object on a line, the messages about it by each level, and from which version on.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// newest is the last version that is asked about.
const newest = 37

// said is a text and the first version that says it; nothing is reported about what complies.
type said [2]any

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "texts:", err)
		os.Exit(1)
	}
}

func run() error {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		var pod corev1.Pod
		if err := json.Unmarshal(lines.Bytes(), &pod); err != nil {
			return err
		}
		answers := map[api.Level][]said{}
		for _, level := range []api.Level{api.LevelBaseline, api.LevelRestricted} {
			for minor := 0; minor <= newest; minor++ {
				asked := api.LevelVersion{Level: level, Version: api.MajorMinorVersion(1, minor)}
				result := policy.AggregateCheckResults(evaluator.EvaluatePod(asked, &pod.ObjectMeta, &pod.Spec))
				text, before := result.ForbiddenDetail(), answers[level]
				if len(before) == 0 || before[len(before)-1][1] != text {
					answers[level] = append(before, said{minor, text})
				}
			}
		}
		line := map[string]any{"pod": json.RawMessage(lines.Text()), "said": answers}
		if err := out.Encode(line); err != nil {
			return err
		}
	}
	return lines.Err()
}
