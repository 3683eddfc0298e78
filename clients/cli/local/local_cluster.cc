#include "clients/cli/local/local_cluster.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/cli/local/machine_share.h"
#include "clients/cli/local/process.h"
#include "clients/cpp/client.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kGrace = absl::Seconds(10);
// A worker saves its job first.
constexpr absl::Duration kWorkerGrace = absl::Seconds(30);
constexpr absl::Duration kPoll = absl::Milliseconds(20);
constexpr int kTailLines = 12;
constexpr char kSchedulerName[] = "scheduler";

std::string LogFile(const std::string& dir, const std::string& name) {
  return fs::path(dir) / "logs" / absl::StrCat(name, ".log");
}

// Workers first: a scheduler that outlives them sees each of them leave.
std::vector<std::string> EndMembers(const std::vector<ClusterMember>& members) {
  std::vector<ProcessId> workers;
  std::vector<ProcessId> schedulers;
  for (const ClusterMember& member : members) {
    (member.name == kSchedulerName ? schedulers : workers)
        .push_back(member.process);
  }
  std::vector<ProcessId> killed = EndProcesses(workers, kWorkerGrace);
  for (const ProcessId& process : EndProcesses(schedulers, kGrace)) {
    killed.push_back(process);
  }
  std::vector<std::string> names;
  for (const ClusterMember& member : members) {
    if (std::find(killed.begin(), killed.end(), member.process) !=
        killed.end()) {
      names.push_back(member.name);
    }
  }
  return names;
}

// A cluster that is being started. Whatever was started is ended again unless
// Finish was reached.
class Starting {
 public:
  Starting(const LocalClusterOptions& options,
           const std::function<bool()>& keep_going)
      : options_(options),
        keep_going_(keep_going),
        deadline_(absl::Now() + options.start) {
    cluster_.share = ShareOfMachine(options.workers, options.share);
  }

  ~Starting() {
    if (is_finished_ || cluster_.members.empty()) return;
    EndMembers(cluster_.members);
    RemoveClusterFile(options_.dir);
  }

  absl::Status StartScheduler() {
    ASSIGN_OR_RETURN(const std::string program,
                     FindProgram("troupe-scheduler", options_.search));
    RETURN_IF_ERROR(
        StartMember(kSchedulerName, {program, "--state", options_.dir}));
    const ProcessId scheduler = cluster_.members.back().process;
    while (true) {
      const absl::StatusOr<Endpoints> endpoints = ReadEndpoints(options_.dir);
      // What an earlier scheduler left there has another process id.
      if (endpoints.ok() && endpoints->pid == scheduler.pid) {
        cluster_.endpoints = *endpoints;
        return absl::OkStatus();
      }
      RETURN_IF_ERROR(Wait("the scheduler to listen"));
    }
  }

  absl::Status StartWorkers() {
    ASSIGN_OR_RETURN(const std::string program,
                     FindProgram("troupe-worker", options_.search));
    for (int i = 0; i < options_.workers; ++i) {
      const std::string name = absl::StrCat("worker-", i);
      std::vector<std::string> command = {
          program, "--scheduler", cluster_.endpoints.grpc, "--name", name};
      for (std::string& flag : ShareFlags(cluster_.share, i)) {
        command.push_back(std::move(flag));
      }
      if (options_.end_with_us) command.push_back("--exit-with-parent");
      RETURN_IF_ERROR(StartMember(name, std::move(command)));
    }
    return WaitForWorkers();
  }

  LocalCluster Finish() {
    is_finished_ = true;
    return std::move(cluster_);
  }

 private:
  absl::Status StartMember(const std::string& name,
                           std::vector<std::string> command) {
    ASSIGN_OR_RETURN(const ProcessId process,
                     StartDaemon({.command = std::move(command),
                                  .log_file = LogFile(options_.dir, name)}));
    cluster_.members.push_back({name, process});
    return WriteClusterFile(options_.dir, cluster_.members);
  }

  absl::Status WaitForWorkers() {
    ASSIGN_OR_RETURN(const auto client,
                     Client::Connect(cluster_.endpoints.grpc));
    while (true) {
      ASSIGN_OR_RETURN(const ListWorkersResponse list, client->Workers());
      const int idle = std::count_if(
          list.workers().begin(), list.workers().end(),
          [&](const WorkerStatus& worker) {
            return worker.state() == WorkerStatus::IDLE && IsMember(worker);
          });
      if (idle == options_.workers) return absl::OkStatus();
      RETURN_IF_ERROR(
          Wait(absl::StrCat(options_.workers - idle, " of ", options_.workers,
                            " workers to register")));
    }
  }

  bool IsMember(const WorkerStatus& worker) const {
    return std::any_of(cluster_.members.begin(), cluster_.members.end(),
                       [&](const ClusterMember& member) {
                         return member.process.pid == worker.pid();
                       });
  }

  // One turn of waiting for `what`; an error once it cannot come any more.
  absl::Status Wait(const std::string& what) {
    if (!keep_going_()) return absl::CancelledError("interrupted");
    for (const ClusterMember& member : cluster_.members) {
      if (IsRunning(member.process)) continue;
      return absl::AbortedError(absl::StrCat(
          member.name, " ended while starting; its log ends with",
          LogTail(LogFile(options_.dir, member.name), kTailLines)));
    }
    if (absl::Now() > deadline_) {
      return absl::DeadlineExceededError(
          absl::StrCat("waited ", absl::FormatDuration(options_.start), " for ",
                       what, "; the logs are in ", options_.dir, "/logs"));
    }
    absl::SleepFor(kPoll);
    return absl::OkStatus();
  }

  const LocalClusterOptions& options_;
  const std::function<bool()>& keep_going_;
  const absl::Time deadline_;
  LocalCluster cluster_;
  bool is_finished_ = false;
};

absl::Status CheckFree(const std::string& dir) {
  ASSIGN_OR_RETURN(const std::vector<ClusterMember> members,
                   ReadClusterFile(dir));
  for (const ClusterMember& member : members) {
    if (!IsRunning(member.process)) continue;
    return absl::AlreadyExistsError(absl::StrCat(
        "a cluster already lives in ", dir, " (", member.name, " is process ",
        member.process.pid, "); stop it with: troupe down --dir ", dir));
  }
  if (ReadEndpoints(dir).ok()) {
    return absl::AlreadyExistsError(absl::StrCat(
        "a scheduler that troupe up did not start already lives in ", dir));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LocalCluster> StartLocalCluster(
    const LocalClusterOptions& options,
    const std::function<bool()>& keep_going) {
  std::error_code error;
  fs::create_directories(fs::path(options.dir) / "logs", error);
  if (error) {
    return absl::PermissionDeniedError(absl::StrCat(
        "cannot make the folder ", options.dir, ": ", error.message()));
  }
  RETURN_IF_ERROR(CheckFree(options.dir));
  Starting starting(options, keep_going);
  RETURN_IF_ERROR(starting.StartScheduler());
  RETURN_IF_ERROR(starting.StartWorkers());
  return starting.Finish();
}

absl::StatusOr<StoppedCluster> StopLocalCluster(const std::string& dir) {
  ASSIGN_OR_RETURN(const std::vector<ClusterMember> members,
                   ReadClusterFile(dir));
  if (members.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no cluster in ", dir, " (there is no ", kClusterFile, ")"));
  }
  StoppedCluster stopped;
  stopped.stopped = std::count_if(
      members.begin(), members.end(),
      [](const ClusterMember& member) { return IsRunning(member.process); });
  stopped.killed = EndMembers(members);
  RemoveClusterFile(dir);
  return stopped;
}

}  // namespace troupe
