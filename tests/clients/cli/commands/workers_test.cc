#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class WorkersTest : public CommandTestBase {};

TEST_F(WorkersTest, ListsThem) {
  scheduler_.workers = [] {
    WorkerStatus worker;
    worker.set_id(1);
    worker.set_state(WorkerStatus::BUSY);
    worker.set_job(7);
    worker.set_pid(42);
    worker.mutable_description()->set_name("worker-0");
    worker.mutable_description()->set_device("cpu");
    worker.mutable_description()->set_threads(2);
    TierBudget& budget = *worker.mutable_description()->add_budgets();
    budget.set_tier(DEVICE);
    budget.set_bytes(1 << 30);
    return std::vector<WorkerStatus>{worker};
  };
  EXPECT_EQ(Ask({"workers"}).out,
            "ID  NAME      STATE  JOB  RANK  DEVICE  THREADS  MEMORY   BUDGET  "
            "PID  HEARD  REASON\n"
            " 1  worker-0  BUSY     7     0  cpu           2     0 B  1.0 GiB  "
            " 42  -\n");
  EXPECT_NE(Ask({"workers", "--json"}).out.find("\"state\": \"BUSY\""),
            std::string::npos);
}

}  // namespace
}  // namespace troupe
