#include "scheduler/store/store.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/protocol_version.h"

namespace troupe {
namespace {

std::string FreshDirectory(const char* name) {
  const std::string directory = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  return directory;
}

std::shared_ptr<const JobRow> RowOf(int64_t id, JobState state) {
  auto row = std::make_shared<JobRow>();
  row->spec.set_name("name");
  row->status.set_id(id);
  row->status.set_state(state);
  row->status.add_checkpoints()->set_path("/c");
  row->attempt = 2;
  row->cancelled = true;
  auto plan = std::make_shared<Plan>();
  plan->set_fingerprint("f");
  row->plan = plan;
  return row;
}

StoreBatch BatchOf(int64_t id, JobState state, int steps) {
  StoreBatch batch;
  batch.jobs[JobId(id)] = RowOf(id, state);
  for (int step = 1; step <= steps; ++step) {
    PersistStep& row = batch.steps.emplace_back();
    row.job = JobId(id);
    row.step.set_step(step);
    row.step.set_loss(step * 0.5);
  }
  for (int i = 0; i < 2; ++i) {
    PersistEvent& row = batch.events.emplace_back();
    row.job = JobId(id);
    row.index = i;
    row.event.set_text(i == 0 ? "first" : "second");
    row.event.set_unix_ms(7);
  }
  return batch;
}

TEST(Store, GivesBackWhatWasWritten) {
  const std::string directory = FreshDirectory("store");
  {
    auto store = Store::Open(directory);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->Write(BatchOf(1, QUEUED, 0)).ok());
    ASSERT_TRUE((*store)->Write(BatchOf(1, RUNNING, 3)).ok());
    ASSERT_TRUE((*store)->Write(BatchOf(2, QUEUED, 0)).ok());
    ASSERT_TRUE((*store)->Write({}).ok());
  }
  auto store = Store::Open(directory);
  const auto jobs = (*store)->Load({});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->jobs.size(), 2u);
  EXPECT_TRUE(jobs->complaints.empty());
  const StoredJob& job = jobs->jobs[0];
  EXPECT_EQ(job.row.status.id(), 1);
  EXPECT_EQ(job.row.status.state(), RUNNING);
  EXPECT_EQ(job.row.status.checkpoints(0).path(), "/c");
  EXPECT_EQ(job.row.spec.name(), "name");
  EXPECT_EQ(job.row.plan->fingerprint(), "f");
  EXPECT_EQ(job.row.attempt, 2);
  EXPECT_TRUE(job.row.cancelled);
  ASSERT_EQ(job.steps.size(), 3u);
  EXPECT_EQ(job.steps[2].loss(), 1.5);
  ASSERT_EQ(job.events.size(), 2u);
  EXPECT_EQ(job.events[1].text(), "second");
}

int64_t Count(const std::string& directory, const std::string& table) {
  auto database = Database::Open(directory + "/troupe.db");
  auto query = database->Prepare("SELECT COUNT(*) FROM " + table);
  EXPECT_TRUE(*query->Next());
  return query->Int(0);
}

TEST(Store, RemembersWhatWasMeasuredOfTheLinksOfHosts) {
  const std::string directory = FreshDirectory("store_hosts");
  for (const double rate : {1e9, 2e9}) {
    StoreBatch batch;
    HostTopology& links = batch.hosts["h"];
    links.set_host("h");
    TopologyLink& between = *links.add_devices()->mutable_between();
    between.mutable_rate()->set_bytes_per_second(rate);
    ASSERT_TRUE((*Store::Open(directory))->Write(batch).ok());
  }
  const auto loaded = (*Store::Open(directory))->Load({});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->hosts.size(), 1u);
  const HostTopology& host = loaded->hosts[0];
  EXPECT_EQ(host.host(), "h");
  EXPECT_EQ(host.devices(0).between().rate().bytes_per_second(), 2e9);
}

TEST(Store, RemembersWorkersByTheirNames) {
  const std::string directory = FreshDirectory("store_workers");
  StoreBatch batch;
  batch.workers["w0"] = {
      .name = "w0", .cordoned = true, .cordoned_why = "its fan"};
  batch.workers["w1"] = {
      .name = "w1",
      .failures = {{JobId(3), "ENOSPC: full"}, {JobId(7), ""}},
      .set_aside = true};
  ASSERT_TRUE((*Store::Open(directory))->Write(batch).ok());
  {
    auto store = Store::Open(directory);
    const auto loaded = (*store)->Load({});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    ASSERT_EQ(loaded->workers.size(), 2u);
    EXPECT_EQ(loaded->workers[0].WhySetAside(), "cordoned: its fan");
    const WorkerRecord& failed = loaded->workers[1];
    EXPECT_EQ(failed.name, "w1");
    EXPECT_TRUE(failed.set_aside);
    ASSERT_EQ(failed.failures.size(), 2u);
    EXPECT_EQ(failed.failures[0].job, JobId(3));
    EXPECT_EQ(failed.failures[0].why, "ENOSPC: full");
    EXPECT_EQ(failed.failures[1].why, "");
    StoreBatch back;
    back.workers["w0"] = {.name = "w0"};
    ASSERT_TRUE((*store)->Write(back).ok());
  }
  const auto loaded = (*Store::Open(directory))->Load({});
  ASSERT_EQ(loaded->workers.size(), 1u);
  EXPECT_EQ(loaded->workers[0].name, "w1");
}

TEST(Store, LoadsTheNewestWithinTheLimitsAndForgetsTheOthers) {
  const std::string directory = FreshDirectory("store-limits");
  auto store = Store::Open(directory);
  ASSERT_TRUE((*store)->Write(BatchOf(1, QUEUED, 0)).ok());
  for (int id = 2; id <= 10; ++id) {
    ASSERT_TRUE((*store)->Write(BatchOf(id, SUCCEEDED, 10)).ok());
  }
  Limits limits;
  limits.ended_jobs_kept = 3;
  limits.steps_per_job_max = 4;
  limits.steps_kept_max = 10;
  ASSERT_EQ(limits.steps_loaded_max(), 8);
  const auto jobs = (*store)->Load(limits);
  ASSERT_EQ(jobs->jobs.size(), 4u);
  EXPECT_EQ(jobs->jobs[0].row.status.id(), 1) << "it still waits";
  EXPECT_EQ(jobs->jobs[1].row.status.id(), 8);
  ASSERT_EQ(jobs->jobs[3].steps.size(), 8u);
  EXPECT_EQ(jobs->jobs[3].steps[0].step(), 3);
  EXPECT_EQ(jobs->jobs[2].steps.size(), 2u);
  EXPECT_EQ(jobs->jobs[1].steps.size(), 0u);
  EXPECT_EQ(Count(directory, "jobs"), 4);
  EXPECT_EQ(Count(directory, "steps"), 30);
  EXPECT_EQ(Count(directory, "events"), 8);
}

TEST(Store, ForgetsWhatTheSchedulerForgot) {
  const std::string directory = FreshDirectory("store-forgets");
  auto store = Store::Open(directory);
  ASSERT_TRUE((*store)->Write(BatchOf(1, SUCCEEDED, 10)).ok());
  ASSERT_TRUE((*store)->Write(BatchOf(2, RUNNING, 100)).ok());
  StoreBatch batch = BatchOf(1, SUCCEEDED, 20);  // not written yet
  batch.thinned.push_back({.job = JobId(2), .before = 65, .every = 16});
  batch.forgotten.push_back(JobId(1));
  ASSERT_TRUE((*store)->Write(batch).ok());
  const auto jobs = (*store)->Load({});
  ASSERT_EQ(jobs->jobs.size(), 1u);
  const std::vector<StepRecord>& steps = jobs->jobs[0].steps;
  ASSERT_EQ(steps.size(), 4u + 36u);
  EXPECT_EQ(steps[0].step(), 16);
  EXPECT_EQ(steps[3].step(), 64);
  EXPECT_EQ(steps[4].step(), 65);
  EXPECT_EQ(Count(directory, "steps"), 40);
  EXPECT_EQ(Count(directory, "events"), 2);
}

TEST(Store, ADamagedJobIsSetAsideAndNamed) {
  for (const char* damage :
       {"status = x'ff'", "status = x''", "spec = x'0aff'", "plan = x'ff'",
        "status = (SELECT status FROM jobs WHERE id = 1)"}) {
    const std::string directory = FreshDirectory("store-damaged");
    {
      auto store = Store::Open(directory);
      for (int id = 1; id <= 3; ++id) {
        ASSERT_TRUE((*store)->Write(BatchOf(id, RUNNING, 2)).ok());
      }
    }
    {
      auto database = Database::Open(directory + "/troupe.db");
      ASSERT_TRUE(database
                      ->Execute(absl::StrCat("UPDATE jobs SET name = 'mine', ",
                                             damage, " WHERE id = 2"))
                      .ok());
    }
    auto store = Store::Open(directory);
    auto jobs = (*store)->Load({});
    ASSERT_TRUE(jobs.ok()) << jobs.status();
    ASSERT_EQ(jobs->jobs.size(), 3u) << damage;
    const JobStatus& status = jobs->jobs[1].row.status;
    EXPECT_EQ(status.id(), 2);
    EXPECT_EQ(status.name(), "mine");
    EXPECT_EQ(status.state(), FAILED);
    EXPECT_TRUE(absl::StrContains(status.reason(), "damaged")) << damage;
    EXPECT_EQ(jobs->jobs[2].row.status.state(), RUNNING);
    ASSERT_EQ(jobs->complaints.size(), 1u);
    EXPECT_TRUE(absl::StrContains(jobs->complaints[0], "job 2 (mine)"));
    EXPECT_EQ(Count(directory, "set_aside WHERE id = 2"), 1);
    // From here on it is a job as others are.
    jobs = (*store)->Load({});
    EXPECT_TRUE(jobs->complaints.empty());
    EXPECT_EQ(jobs->jobs[1].row.status.state(), FAILED);
  }
}

TEST(Store, DamagedStepsAreLeftOut) {
  const std::string directory = FreshDirectory("store-damaged-step");
  auto store = Store::Open(directory);
  ASSERT_TRUE((*store)->Write(BatchOf(1, RUNNING, 5)).ok());
  {
    auto database = Database::Open(directory + "/troupe.db");
    ASSERT_TRUE(
        database->Execute("UPDATE steps SET record = x'ff' WHERE step = 3")
            .ok());
  }
  const auto jobs = (*store)->Load({});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->jobs[0].steps.size(), 4u);
  EXPECT_EQ(jobs->jobs[0].row.status.state(), RUNNING);
  ASSERT_EQ(jobs->complaints.size(), 1u);
  EXPECT_TRUE(absl::StrContains(jobs->complaints[0], "1 steps are damaged"));
}

constexpr int kPageBytes = 4096;

// The pages below a table's root that hold rows, in the order of the key: what
// a page's header says (sqlite.org/fileformat.html, "B-tree Pages").
std::vector<int64_t> LeavesOf(const std::string& directory,
                              const std::string& table) {
  auto database = Database::Open(directory + "/troupe.db");
  auto query = database->Prepare(
      "SELECT rootpage FROM sqlite_master WHERE name = '" + table + "'");
  EXPECT_TRUE(*query->Next());
  std::ifstream file(directory + "/troupe.db", std::ios::binary);
  std::string page(kPageBytes, 0);
  file.seekg((query->Int(0) - 1) * kPageBytes);
  file.read(page.data(), kPageBytes);
  const auto number = [&page](size_t at, int bytes) {
    int64_t value = 0;
    for (int i = 0; i < bytes; ++i) {
      value = value << 8 | static_cast<unsigned char>(page[at + i]);
    }
    return value;
  };
  EXPECT_TRUE(page[0] == 2 || page[0] == 5) << "an interior page";
  std::vector<int64_t> leaves;
  for (int64_t cell = 0; cell < number(3, 2); ++cell) {
    leaves.push_back(number(number(12 + 2 * cell, 2), 4));
  }
  leaves.push_back(number(8, 4));
  return leaves;
}

void Destroy(const std::string& directory, int64_t page) {
  std::fstream file(directory + "/troupe.db",
                    std::ios::binary | std::ios::in | std::ios::out);
  file.seekp((page - 1) * kPageBytes);
  file << std::string(kPageBytes, '\xff');
}

TEST(Store, AJobOutlivesADamagedPageOfItsSteps) {
  const std::string directory = FreshDirectory("store-torn-steps");
  {
    auto store = Store::Open(directory);
    for (int id = 1; id <= 3; ++id) {
      ASSERT_TRUE((*store)->Write(BatchOf(id, QUEUED, 1000)).ok());
    }
  }
  const std::vector<int64_t> leaves = LeavesOf(directory, "steps");
  ASSERT_GE(leaves.size(), 9u);
  Destroy(directory, leaves[leaves.size() / 2]);  // of job 2
  Destroy(directory, leaves.back());              // of job 3
  auto store = Store::Open(directory);
  auto jobs = (*store)->Load({});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->jobs.size(), 3u);
  EXPECT_EQ(jobs->jobs[0].steps.size(), 1000u);
  for (const int job : {1, 2}) {
    EXPECT_GT(jobs->jobs[job].steps.size(), 600u) << job;
    EXPECT_LT(jobs->jobs[job].steps.size(), 1000u) << job;
    EXPECT_EQ(jobs->jobs[job].row.status.state(), QUEUED);
    EXPECT_EQ(jobs->jobs[job].events.size(), 2u);
  }
  EXPECT_EQ(jobs->jobs[1].steps.back().step(), 1000) << "from both ends";
  ASSERT_EQ(jobs->complaints.size(), 1u);
  EXPECT_TRUE(absl::StrContains(jobs->complaints[0], "of jobs 2, 3 are left"))
      << jobs->complaints[0];
  // From here on it is a store as others are, also at its torn end.
  EXPECT_TRUE((*store)->Write(BatchOf(3, RUNNING, 1000)).ok());
  EXPECT_TRUE((*store)->Write(BatchOf(4, RUNNING, 10)).ok());
  jobs = (*store)->Load({});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_TRUE(jobs->complaints.empty());
  EXPECT_EQ(jobs->jobs[2].steps.size(), 1000u);
}

TEST(Store, OtherJobsOutliveADamagedPageOfJobs) {
  for (const bool last : {false, true}) {
    const std::string directory = FreshDirectory("store-torn-jobs");
    {
      auto store = Store::Open(directory);
      for (int id = 1; id <= 200; ++id) {
        ASSERT_TRUE((*store)->Write(BatchOf(id, QUEUED, 1)).ok());
      }
    }
    const std::vector<int64_t> leaves = LeavesOf(directory, "jobs");
    ASSERT_GE(leaves.size(), 3u);
    Destroy(directory, last ? leaves.back() : leaves[1]);
    auto store = Store::Open(directory);
    const auto jobs = (*store)->Load({});
    ASSERT_TRUE(jobs.ok()) << jobs.status();
    ASSERT_EQ(jobs->jobs.size(), 200u) << "no number is given away again";
    int failed = 0;
    for (const StoredJob& job : jobs->jobs) {
      failed += job.row.status.state() == FAILED;
      EXPECT_EQ(job.steps.size(), 1u);
    }
    EXPECT_GT(failed, 0);
    EXPECT_LT(failed, 100);
    EXPECT_EQ(jobs->jobs[199].row.status.state(), last ? FAILED : QUEUED);
    EXPECT_TRUE((*store)->Write(BatchOf(201, QUEUED, 1)).ok());
  }
}

// With the job's row, as an attempt of it begins.
StoreBatch AttemptOf(int64_t id, int32_t attempt) {
  StoreBatch batch;
  auto row = std::make_shared<JobRow>(*RowOf(id, RUNNING));
  row->attempt = attempt;
  batch.jobs[JobId(id)] = row;
  auto plan = std::make_shared<Plan>();
  plan->set_fingerprint("f");
  plan->add_roles()->add_programs()->set_kind(Program::KEEP);
  auto handed = std::make_shared<HandOut>();
  handed->plan = plan;
  handed->assignment.set_resume("/c/step-1");
  handed->loads_data = {true, false};
  handed->machines.resize(2);
  handed->machines[1].set_name(absl::StrCat("w", attempt));
  batch.hand_outs[JobId(id)] = {JobId(id), attempt, handed};
  return batch;
}

TEST(Store, GivesBackWhatTheRanksOfAnAttemptWereHanded) {
  const std::string directory = FreshDirectory("store-hand-outs");
  for (const int32_t attempt : {1, 2}) {
    auto store = Store::Open(directory);
    ASSERT_TRUE((*store)->Write(AttemptOf(1, attempt)).ok());
    const auto jobs = (*store)->Load({});
    ASSERT_TRUE(jobs.ok()) << jobs.status();
    const auto& handed = jobs->jobs[0].hand_out;
    ASSERT_NE(handed, nullptr);
    EXPECT_EQ(handed->plan->roles(0).programs(0).kind(), Program::KEEP);
    EXPECT_EQ(handed->assignment.resume(), "/c/step-1");
    EXPECT_EQ(handed->loads_data, (std::vector<bool>{true, false}));
    ASSERT_EQ(handed->machines.size(), 2u);
    EXPECT_EQ(handed->machines[1].name(), absl::StrCat("w", attempt));
    EXPECT_EQ(Count(directory, "hand_outs"), 1);
  }
}

TEST(Store, WhatWasHandedOutGoesWithTheRun) {
  const std::string directory = FreshDirectory("store-hand-outs-go");
  auto store = Store::Open(directory);
  for (const JobState state : {QUEUED, FAILED}) {
    ASSERT_TRUE((*store)->Write(AttemptOf(1, 2)).ok());
    ASSERT_TRUE((*store)->Write(BatchOf(1, RUNNING, 1)).ok());
    EXPECT_EQ(Count(directory, "hand_outs"), 1);
    ASSERT_TRUE((*store)->Write(BatchOf(1, state, 1)).ok());
    EXPECT_EQ(Count(directory, "hand_outs"), 0) << JobState_Name(state);
  }
  // That of another attempt is of no use.
  StoreBatch later = AttemptOf(1, 3);
  later.hand_outs.clear();
  ASSERT_TRUE((*store)->Write(AttemptOf(1, 2)).ok());
  ASSERT_TRUE((*store)->Write(later).ok());
  EXPECT_EQ((*store)->Load({})->jobs[0].hand_out, nullptr);
}

TEST(Store, AJobOutlivesWhatItsRanksWereHanded) {
  const std::string directory = FreshDirectory("store-hand-outs-damaged");
  auto store = Store::Open(directory);
  ASSERT_TRUE((*store)->Write(AttemptOf(1, 2)).ok());
  {
    auto database = Database::Open(directory + "/troupe.db");
    ASSERT_TRUE(
        database->Execute("UPDATE hand_outs SET plan = x'ffffffff'").ok());
  }
  const auto jobs = (*store)->Load({});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->jobs[0].row.status.state(), RUNNING);
  EXPECT_EQ(jobs->jobs[0].hand_out, nullptr);
  ASSERT_EQ(jobs->complaints.size(), 1u);
  EXPECT_TRUE(absl::StrContains(jobs->complaints[0], "job 1"));
}

TEST(Store, RefusesWhatANewerBuildWrote) {
  const std::string directory = FreshDirectory("store-newer");
  ASSERT_TRUE(Store::Open(directory).ok());
  {
    auto database = Database::Open(directory + "/troupe.db");
    ASSERT_TRUE(database->Execute("PRAGMA user_version = 99").ok());
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(Store::Open(directory).status()));
}

// With the same tables, but with messages that this build would misread.
TEST(Store, RefusesWhatABuildOfANewerProtocolWrote) {
  const std::string directory = FreshDirectory("store-newer-protocol");
  const std::string path = directory + "/troupe.db";
  ASSERT_TRUE(Store::Open(directory).ok());
  ASSERT_TRUE(Store::Open(directory).ok()) << "its own";
  {
    auto database = Database::Open(path);
    ASSERT_TRUE(database
                    ->Execute("INSERT INTO builds VALUES "
                              "(999, 'troupe 9.9', 1700000000000)")
                    .ok());
  }
  const absl::Status refused = Store::Open(directory).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(
      refused.message(),
      absl::StrCat(path,
                   " was written by a newer scheduler (troupe 9.9, "
                   "protocol 999; this one is ",
                   kBuildName, ", protocol ", kProtocolVersion,
                   "); start that build, or this one with another --state "
                   "directory"));
}

}  // namespace
}  // namespace troupe
