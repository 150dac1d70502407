package main

func formats(t *table) {}
func urls(t *table)    {}
