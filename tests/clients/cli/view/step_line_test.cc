#include "clients/cli/view/step_line.h"

#include "clients/cli/view/format.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

StepRecord Record() {
  StepRecord record;
  record.set_step(120);
  record.set_loss(2.34123);
  record.set_grad_norm(0.8312);
  record.set_learning_rate(2.1e-4);
  record.set_tokens_per_second(12345);
  record.set_mfu(0.412);
  record.set_step_seconds(0.5);
  record.set_memory_bytes(1288490189);
  return record;
}

TEST(StepLine, HasWhatTheFieldExpects) {
  StepRecord record = Record();
  const StepProgress progress{.steps_total = 200, .eta_seconds = 42};
  EXPECT_EQ(StepLine(record, progress),
            "step 120/200  loss 2.3412  grad_norm 0.83  lr 2.1e-04  12.3k "
            "tok/s  MFU 41.2%  mem 1.2 GiB  ETA 0:42");
  record.set_validation_loss(2.4);
  EXPECT_EQ(StepLine(record, {.steps_total = 200}),
            "step 120/200  loss 2.3412  val 2.4000  grad_norm 0.83  lr 2.1e-04 "
            " 12.3k tok/s  MFU 41.2%  mem 1.2 GiB");
}

TEST(StepLine, SaysWhatACheckpointCost) {
  StepRecord record = Record();
  record.set_checkpoint_stall_seconds(0.314);
  EXPECT_EQ(StepLine(record, {.steps_total = 200, .eta_seconds = 42}),
            "step 120/200  loss 2.3412  grad_norm 0.83  lr 2.1e-04  12.3k "
            "tok/s  MFU 41.2%  mem 1.2 GiB  checkpoint 0.31 s  ETA 0:42");
}

TEST(StepLine, SaysWhatMovedBetweenTiers) {
  StepRecord record = Record();
  TierTraffic& host = *record.add_tiers();
  host.set_tier(HOST);
  host.set_bytes_in(1 << 20);
  TierTraffic& nvme = *record.add_tiers();
  nvme.set_tier(NVME);
  nvme.set_bytes_in(1'500'000'000);
  nvme.set_bytes_out(500'000'000);
  nvme.set_seconds(0.8);
  nvme.set_waited_seconds(0.12);
  EXPECT_EQ(StepLine(record, {.steps_total = 200, .eta_seconds = 42}),
            "step 120/200  loss 2.3412  grad_norm 0.83  lr 2.1e-04  12.3k "
            "tok/s  MFU 41.2%  mem 1.2 GiB  host 1.0 MiB, waited 0 s  nvme "
            "1.9 GiB 2.50 GB/s, waited 120 ms  ETA 0:42");
}

TEST(StepLine, SaysHowTheLossIsScaled) {
  StepRecord record = Record();
  record.set_loss_scale(65536);
  EXPECT_EQ(StepLine(record, {.steps_total = 200, .eta_seconds = 42}),
            "step 120/200  loss 2.3412  grad_norm 0.83  lr 2.1e-04  scale "
            "65536  12.3k tok/s  MFU 41.2%  mem 1.2 GiB  ETA 0:42");
  record.set_skipped_steps(3);
  EXPECT_NE(StepLine(record, {}).find("scale 65536, 3 skipped  "),
            std::string::npos);
  record.set_skipped(true);
  EXPECT_NE(StepLine(record, {}).find("scale 65536, skipped  "),
            std::string::npos);
}

TEST(StepLine, SaysThatTheMachineIsSlower) {
  StepRecord record = Record();
  record.mutable_machine()->set_slower(0.12);
  record.mutable_machine()->set_stolen(0.08);
  const StepProgress progress{.steps_total = 200, .eta_seconds = 42};
  EXPECT_EQ(StepLine(record, progress),
            "step 120/200  loss 2.3412  grad_norm 0.83  lr 2.1e-04  12.3k "
            "tok/s  MFU 41.2%  mem 1.2 GiB  machine 12 % slower (8 % stolen)  "
            "ETA 0:42");
  // Before what matters less.
  EXPECT_EQ(ProgressLine(record, progress, 100),
            "[#########------] step 120/200  loss 2.3412  12.3k tok/s  "
            "machine 12 % slower (8 % stolen)  ETA 0:42");
  record.mutable_machine()->set_slower(0.04);
  EXPECT_EQ(StepLine(record, progress), StepLine(Record(), progress));
}

TEST(ProgressLine, NeverIsWiderThanTheTerminal) {
  const StepRecord record = Record();
  const StepProgress progress{.steps_total = 200, .eta_seconds = 42};
  for (int width = 0; width < 200; ++width) {
    EXPECT_LE(TextWidth(ProgressLine(record, progress, width)), width) << width;
  }
  EXPECT_EQ(ProgressLine(record, progress, 200),
            "[##################------------] " + StepLine(record, progress));
  // What matters least goes first.
  EXPECT_EQ(ProgressLine(record, progress, 80),
            "[#########------] step 120/200  loss 2.3412  12.3k tok/s  MFU "
            "41.2%  ETA 0:42");
  EXPECT_EQ(ProgressLine(record, progress, 20), "step 120/200");
}

TEST(StepClock, EstimatesFromTheStepsSeen) {
  StepClock clock;
  EXPECT_LT(clock.EtaSeconds(200), 0);
  StepRecord record = Record();
  clock.Add(record);
  EXPECT_DOUBLE_EQ(clock.EtaSeconds(200), 40);
  record.set_step(121);
  record.set_step_seconds(1.5);
  clock.Add(record);
  EXPECT_DOUBLE_EQ(clock.EtaSeconds(200), 79 * 1.5) << "the first warms up";
  record.set_step(122);
  record.set_step_seconds(0.5);
  clock.Add(record);
  EXPECT_DOUBLE_EQ(clock.EtaSeconds(200), 78 * 1.0);
  EXPECT_DOUBLE_EQ(clock.EtaSeconds(100), 0);
}

}  // namespace
}  // namespace troupe
