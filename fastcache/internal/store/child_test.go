package store_test

import "os"

const roleEnv = "STORE_TEST_ROLE"

func child(role string) { os.Exit(1) }
