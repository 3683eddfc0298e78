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
            "NETWORK  PID  FAILED  HEARD  REASON\n"
            " 1  worker-0  BUSY     7     0  cpu           2     0 B  1.0 GiB  "
            "      -   42       0  -\n"
            " 2  worker-1  BUSY     -     -  cpu           0     0 B        -  "
            "      -    0       0  -      writes text 5\n");
  EXPECT_NE(Ask({"workers", "--json"}).out.find("\"state\": \"BUSY\""),
            std::string::npos);
}

TEST_F(WorkersTest, SaysWhyAWorkerIsSetAside) {
  scheduler_.workers = [] {
    WorkerStatus worker;
    worker.set_state(WorkerStatus::IDLE);
    worker.set_set_aside("jobs 1, 2, 3 failed on it, and not elsewhere");
    worker.set_local_failures(3);
    return std::vector<WorkerStatus>{worker};
  };
  const std::string out = Ask({"workers"}).out;
  EXPECT_NE(out.find(" IDLE, aside "), std::string::npos) << out;
  EXPECT_NE(out.find(" 3  -      jobs 1, 2, 3 failed on it, and not elsewhere"),
            std::string::npos)
      << out;
}

TEST_F(WorkersTest, CordonsAndUncordons) {
  EXPECT_EQ(Ask({"workers", "cordon", "worker-1", "--why", "its fan"}).out,
            "worker-1 gets no more ranks, until troupe workers uncordon "
            "worker-1\n");
  EXPECT_EQ(Ask({"workers", "uncordon", "worker-1"}).out,
            "worker-1 is in service\n");
  EXPECT_EQ(Ask({"workers", "cordon"}).code, 2);
}

}  // namespace
}  // namespace troupe
