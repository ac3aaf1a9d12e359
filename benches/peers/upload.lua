-- wrk's requests of the row `upload`: a body of 1 MiB, written as fast as the connection takes it.
wrk.method = "POST"
wrk.body = string.rep("x", 1024 * 1024)
