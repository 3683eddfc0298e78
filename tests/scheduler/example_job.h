// A small job and a machine to plan it for, shared by the planner's tests.
#ifndef TROUPE_TESTS_SCHEDULER_EXAMPLE_JOB_H_
#define TROUPE_TESTS_SCHEDULER_EXAMPLE_JOB_H_

#include <vector>

#include "proto/cluster.pb.h"
#include "proto/job.pb.h"

namespace troupe {

struct JobSize {
  int data = 1;
  int micro_batches = 1;  // of each rank
  int blocks = 2;
  int micro_batch_size = 2;
};

// Width 16, 2 heads, 64 tokens, sequences of 8; one block a bucket; no
// validation, no checkpoints. Not resolved.
JobSpec ExampleJob(const JobSize& size);

// `count` workers on one host of as many cores, one thread each, with round
// rates: products 1e9 flop/s, memory 1e9 B/s, loopback 1e9 B/s after 10 us.
std::vector<WorkerDescription> ExampleWorkers(int count);

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_EXAMPLE_JOB_H_
