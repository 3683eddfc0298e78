#include "scheduler/simulate/datasheet_peak.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

void State(ElementType dtype, double rate, WorkerDescription& worker) {
  DatasheetRate& stated = *worker.add_datasheet();
  stated.set_dtype(dtype);
  stated.set_flops_per_second(rate);
}

double PeakOf(const std::vector<WorkerDescription>& workers, ElementType type) {
  return DatasheetPeak(type, workers, SeatsOf(workers));
}

TEST(DatasheetPeak, AddsUpWhereAllAreKnown) {
  std::vector<WorkerDescription> workers = ExampleWorkers(2);
  EXPECT_EQ(PeakOf(workers, F32), 0);
  State(F32, 2e9, workers[0]);
  State(BF16, 8e9, workers[0]);
  EXPECT_EQ(PeakOf(workers, F32), 0) << "one of them has none";
  State(F32, 3e9, workers[1]);
  EXPECT_EQ(PeakOf(workers, F32), 5e9);
  EXPECT_EQ(PeakOf(workers, BF16), 0) << "one of them has none in bf16";
}

// Two ranks on one GPU compute no more than it does.
TEST(DatasheetPeak, CountsAGpuOnce) {
  std::vector<WorkerDescription> workers = ExampleWorkers(2);
  for (WorkerDescription& worker : workers) {
    worker.set_host("host");
    worker.mutable_gpu()->set_uuid("x");
    State(F32, 6e9, worker);
  }
  EXPECT_DOUBLE_EQ(PeakOf(workers, F32), 6e9);
  workers[1].mutable_gpu()->set_uuid("y");
  EXPECT_DOUBLE_EQ(PeakOf(workers, F32), 12e9);
}

}  // namespace
}  // namespace troupe
