package main

func cidrs(t *table)      {}
func formats(t *table)    {}
func ips(t *table)        {}
func quantities(t *table) {}
func semvers(t *table)    {}
func times(t *table)      {}
func urls(t *table)       {}
