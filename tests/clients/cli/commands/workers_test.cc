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
    WorkerStatus writer;
    writer.set_id(2);
    writer.set_state(WorkerStatus::BUSY);
    writer.set_text(5);
    writer.set_reason("writes text 5");
    writer.mutable_description()->set_name("worker-1");
    writer.mutable_description()->set_device("cpu");
    return std::vector<WorkerStatus>{worker, writer};
  };
  EXPECT_EQ(Ask({"workers"}).out,
            "ID  NAME      STATE  JOB  RANK  DEVICE  THREADS  MEMORY   BUDGET  "
            "PID  HEARD  REASON\n"
            " 1  worker-0  BUSY     7     0  cpu           2     0 B  1.0 GiB  "
            " 42  -\n"
            " 2  worker-1  BUSY     -     -  cpu           0     0 B        -  "
            "  0  -      writes text 5\n");
  EXPECT_NE(Ask({"workers", "--json"}).out.find("\"state\": \"BUSY\""),
            std::string::npos);
}

}  // namespace
}  // namespace troupe
