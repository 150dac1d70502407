package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What came of a run.
type result struct {
	P50, P99   float64 // milliseconds
	CPU        float64 // microseconds of a request
	Patched    int
	Requests   int
	MemoryMiB  float64
	NotInTime  int // requests that began more than 50 ms late: the machine was too busy for the rate
	HTTPStatus map[int]int
}

// The review that an API server makes of a pod that says nothing of users and privileges.
func review(namespace string, pod json.RawMessage) []byte {
	kind := map[string]string{"group": "", "version": "v1", "kind": "Pod"}
	resource := map[string]string{"group": "", "version": "v1", "resource": "pods"}
	text, _ := json.Marshal(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": map[string]any{
			"uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": kind, "resource": resource,
			"requestKind": kind, "requestResource": resource, "name": "job", "namespace": namespace,
			"operation": "CREATE", "userInfo": map[string]any{"username": "tools.job", "groups": []string{"system:authenticated"}},
			"object": pod, "oldObject": nil, "dryRun": false,
			"options": map[string]string{"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
		},
	})
	return text
}

// CPU time of a process, and its resident memory in MiB.
func spent(pid int) (time.Duration, float64) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] {
		one, _ := strconv.ParseInt(field, 10, 64)
		ticks += one
	}
	pages, _ := strconv.ParseFloat(fields[21], 64)
	return time.Duration(ticks) * 10 * time.Millisecond, pages * float64(os.Getpagesize()) / (1 << 20)
}

// Sends requests at a rate, as an API server does over HTTP/1.1, and measures from when each was due.
func load(url string, pid, rate, seconds, namespaces int, pod json.RawMessage) result {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}},
		MaxIdleConnsPerHost: 25,
	}}
	var mutex sync.Mutex
	var wait sync.WaitGroup
	var times []float64
	found := result{HTTPStatus: map[int]int{}}
	before, _ := spent(pid)
	start := time.Now()
	for i := range rate * seconds {
		due := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		late := time.Since(due) > 50*time.Millisecond
		body := review(fmt.Sprintf("tool-%04d", i%namespaces), pod)
		wait.Go(func() {
			begin := time.Now()
			response, err := client.Post(url, "application/json", bytes.NewReader(body))
			status, patched := 0, false
			if err == nil {
				text, _ := io.ReadAll(response.Body)
				response.Body.Close()
				status, patched = response.StatusCode, bytes.Contains(text, []byte(`"patch":`))
			}
			took := float64(time.Since(begin).Microseconds()) / 1000
			mutex.Lock()
			defer mutex.Unlock()
			times = append(times, took)
			found.HTTPStatus[status]++
			if patched {
				found.Patched++
			}
			if late {
				found.NotInTime++
			}
		})
	}
	wait.Wait()
	after, memory := spent(pid)
	slices.Sort(times)
	found.Requests, found.MemoryMiB = len(times), memory
	found.P50, found.P99 = times[len(times)/2], times[len(times)*99/100]
	found.CPU = float64((after - before).Microseconds()) / float64(len(times))
	return found
}
