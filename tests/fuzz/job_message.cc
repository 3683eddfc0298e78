// Any bytes as the JobSpec that a client sends, ours or not: numbers that no
// job file can hold (NaN, infinity, negative counts) reach the planner this
// way.
#include <cstdint>

#include "proto/job.pb.h"
#include "tests/fuzz/plan_job.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  troupe::JobSpec job;
  if (job.ParseFromArray(data, static_cast<int>(size))) troupe::PlanJob(job);
  return 0;
}
