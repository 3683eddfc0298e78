#include "clients/cli/local/local_cluster.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/cli/local/end_members.h"
#include "clients/cli/local/machine_share.h"
#include "clients/cli/local/process.h"
#include "clients/cpp/client.h"
#include "clients/cpp/cluster_commands.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "proto/trust/cluster_trust.h"
#include "storage/disk/file_lock.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPoll = absl::Milliseconds(20);
constexpr int kTailLines = 12;

std::string LogFile(const std::string& dir, const std::string& name) {
  return fs::path(dir) / "logs" / absl::StrCat(name, ".log");
}

const ClusterMember* Named(const std::string& name,
                           const std::vector<ClusterMember>& members) {
  for (const ClusterMember& member : members) {
    if (member.name == name) return &member;
  }
  return nullptr;
}

// Those of DIR's cluster before it is started, or made whole again.
struct FoundMembers {
  std::vector<ClusterMember> running;
  std::vector<ClusterMember> gone;  // where some run
  bool IsNew() const { return running.empty(); }
  // Workers that look for their scheduler.
  bool LacksScheduler() const { return !IsNew() && IsWorker(running[0]); }
};

absl::Status HasCertificates(const std::string& dir) {
  return absl::FailedPreconditionError(
      absl::StrCat("the cluster in ", dir, " has certificates; leave out ",
                   "--insecure, or begin anew: ", DownCommand(dir)));
}

void Append(const std::vector<std::string>& more,
            std::vector<std::string>& command) {
  command.insert(command.end(), more.begin(), more.end());
}

bool IsKnown(const WorkerShare& share) { return share.threads > 0; }

std::string RootWords(const WorkerShare& share) {
  std::string words;
  for (const std::string& root : share.roots) {
    absl::StrAppend(&words, " --root ", root);
  }
  return words;
}

// FailedPrecondition where `asked` says another thing than a worker had.
absl::Status CheckSame(const ClusterMember& worker, const WorkerShare& asked,
                       const std::string& dir) {
  if (!IsKnown(worker.share)) return absl::OkStatus();
  WorkerShare wanted = worker.share;
  if (asked.threads != 0) wanted.threads = asked.threads;
  if (!asked.device_memory.empty()) wanted.device_memory = asked.device_memory;
  if (!asked.host_memory.empty()) wanted.host_memory = asked.host_memory;
  if (!asked.nvme.empty()) wanted.nvme = asked.nvme;
  if (!asked.nvme_size.empty()) wanted.nvme_size = asked.nvme_size;
  if (!asked.roots.empty()) wanted.roots = asked.roots;
  wanted.gpu = wanted.gpu || asked.gpu;
  if (wanted == worker.share) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      worker.name, " of the cluster in ", dir, " was started with --threads ",
      worker.share.threads, " --device-memory ", worker.share.device_memory,
      " --host-memory ", worker.share.host_memory,
      worker.share.nvme.empty()
          ? ""
          : absl::StrCat(" --nvme ", worker.share.nvme, " --nvme-size ",
                         worker.share.nvme_size),
      RootWords(worker.share), worker.share.gpu ? " on a GPU" : " on the CPU",
      "; leave out the flags that say another thing, or begin anew: ",
      DownCommand(dir)));
}

// A cluster that is being started, or made whole again. Whatever was started is
// ended again unless Finish was reached.
class Starting {
 public:
  Starting(const LocalClusterOptions& options,
           const std::function<bool()>& keep_going, FoundMembers before)
      : options_(options),
        keep_going_(keep_going),
        deadline_(SteadyNow() + options.start),
        before_(std::move(before)) {
    cluster_.members = before_.running;
  }

  ~Starting() {
    if (is_finished_ || cluster_.members.size() == before_.running.size()) {
      return;
    }
    std::vector<ClusterMember> ours(
        cluster_.members.begin() + before_.running.size(),
        cluster_.members.end());
    const EndedMembers ended = EndMembers(ours, {});
    // How a worker is started that takes another's place stays known.
    EraseIf(ours, [&](const ClusterMember& member) {
      return Named(member.name, before_.gone) != nullptr;
    });
    // Should that fail, the file names some that are gone.
    ForgetMembers(options_.dir, ours, ended.left).IgnoreError();
  }

  absl::Status StartScheduler() {
    ASSIGN_OR_RETURN(const std::string program,
                     FindProgram("troupe-scheduler", options_.search));
    // Of an earlier cluster, perhaps of a container that is gone. Later, when
    // ours may hold DIR/lock, they would count as those of one that lives.
    RETURN_IF_ERROR(ChangeClusterFile(
        options_.dir, [this](std::vector<ClusterMember>& members) {
          EraseIf(members, [this](const ClusterMember& was) {
            return !IsRunning(was.process) &&
                   (before_.IsNew() || !IsWorker(was));
          });
        }));
    std::vector<std::string> command = {program, "--state", options_.dir};
    bool insecure = options_.insecure;
    if (before_.LacksScheduler()) {
      const ClusterMember& worker = before_.running[0];
      if (insecure && !worker.insecure) return HasCertificates(options_.dir);
      insecure = worker.insecure;
      Append({"--listen", worker.scheduler}, command);
    }
    Append(TrustArguments(PeerRole::kScheduler, insecure), command);
    RETURN_IF_ERROR(StartMember(kSchedulerName, std::move(command)));
    const ProcessId scheduler = cluster_.members.back().process;
    while (true) {
      const absl::StatusOr<Endpoints> endpoints = ReadEndpoints(options_.dir);
      // What an earlier scheduler left there has another process id.
      if (endpoints.ok() && endpoints->process.pid == scheduler.pid) {
        cluster_.endpoints = *endpoints;
        return absl::OkStatus();
      }
      RETURN_IF_ERROR(Wait("the scheduler to listen"));
    }
  }

  absl::Status FindScheduler() {
    ASSIGN_OR_RETURN(cluster_.endpoints, ReadEndpoints(options_.dir));
    if (options_.insecure == IsInsecure()) return absl::OkStatus();
    if (IsInsecure()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the cluster in ", options_.dir,
                       " has no certificates; to add "
                       "workers to it say --insecure again, or begin anew: ",
                       DownCommand(options_.dir)));
    }
    return HasCertificates(options_.dir);
  }

  // As many as are missing, with the first names that are free.
  absl::Status StartWorkers() {
    ASSIGN_OR_RETURN(const std::string program,
                     FindProgram("troupe-worker", options_.search));
    ASSIGN_OR_RETURN(const WorkerShare even, ShareOfNewWorkers());
    for (int i = 0; CountWorkers(cluster_.members) < options_.workers; ++i) {
      const std::string name = absl::StrCat("worker-", i);
      if (Named(name, cluster_.members) != nullptr) continue;
      const ClusterMember* gone = Named(name, before_.gone);
      if (gone != nullptr) {
        RETURN_IF_ERROR(CheckSame(*gone, options_.share, options_.dir));
      }
      const WorkerShare& share =
          gone != nullptr && IsKnown(gone->share) ? gone->share : even;
      std::vector<std::string> command = {
          program, "--scheduler", cluster_.endpoints.grpc, "--name", name};
      Append(ShareArguments(share, i), command);
      Append(TrustArguments(PeerRole::kWorker, IsInsecure()), command);
      RETURN_IF_ERROR(StartMember(name, std::move(command), share));
    }
    return WaitForWorkers();
  }

  LocalCluster Finish() {
    is_finished_ = true;
    for (size_t i = before_.running.size(); i < cluster_.members.size(); ++i) {
      cluster_.started.push_back(cluster_.members[i].name);
    }
    std::stable_partition(
        cluster_.members.begin(), cluster_.members.end(),
        [](const ClusterMember& member) { return !IsWorker(member); });
    return std::move(cluster_);
  }

 private:
  bool IsInsecure() const { return cluster_.endpoints.trust.insecure > 0; }

  std::vector<std::string> TrustArguments(PeerRole role, bool insecure) const {
    if (insecure) return {"--insecure"};
    return {"--certificates", MemberDirectory(options_.dir, role)};
  }

  // Of one kind with those that are there.
  absl::StatusOr<WorkerShare> ShareOfNewWorkers() const {
    WorkerShare wanted = options_.share;
    for (const auto* members : {&before_.running, &before_.gone}) {
      for (const ClusterMember& member : *members) {
        RETURN_IF_ERROR(CheckSame(
            member, {.roots = options_.share.roots, .gpu = options_.share.gpu},
            options_.dir));
        if (wanted.roots.empty()) wanted.roots = member.share.roots;
        wanted.gpu = wanted.gpu || member.share.gpu;
      }
    }
    return ShareOfMachine(options_.workers, wanted);
  }

  absl::Status StartMember(const std::string& name,
                           std::vector<std::string> command,
                           const WorkerShare& share = {}) {
    const bool is_new = before_.IsNew();
    if (options_.end_with_us) {
      command.insert(command.end(),
                     {"--exit-with-parent", absl::StrCat(getpid())});
    }
    // It writes its log itself, so that it can rotate it. What goes to its
    // stdout and stderr besides, as the words of a crash, is there as well.
    const std::string log = LogFile(options_.dir, name);
    command.insert(command.end(), {"--log", log});
    // What one that is gone said last stays in its log.
    ASSIGN_OR_RETURN(const ProcessId process,
                     StartDaemon({.command = std::move(command),
                                  .log_file = log,
                                  .append = !is_new}));
    ClusterMember member = {name, process, share};
    if (IsWorker(member)) {
      member.scheduler = cluster_.endpoints.grpc;
      member.insecure = IsInsecure();
    }
    cluster_.members.push_back(member);
    return ChangeClusterFile(
        options_.dir, [&](std::vector<ClusterMember>& members) {
          EraseIf(members, [&](const ClusterMember& was) {
            return !IsRunning(was.process) && was.name == name;
          });
          members.insert(IsWorker(member) ? members.end() : members.begin(),
                         member);
        });
  }

  // Until all that were started are registered; what they do then is not asked:
  // a job that waits in the queue takes them at once.
  absl::Status WaitForWorkers() {
    ASSIGN_OR_RETURN(const auto client,
                     Client::Connect(cluster_.endpoints.grpc,
                                     {.trust = cluster_.endpoints.trust}));
    const int wanted = CountWorkers(cluster_.members);
    while (true) {
      ASSIGN_OR_RETURN(const ListWorkersResponse list, client->Workers());
      const int registered =
          std::count_if(list.workers().begin(), list.workers().end(),
                        [&](const WorkerStatus& worker) {
                          return (worker.state() == WorkerStatus::IDLE ||
                                  worker.state() == WorkerStatus::BUSY) &&
                                 IsMember(worker);
                        });
      if (registered == wanted) return absl::OkStatus();
      RETURN_IF_ERROR(Wait(absl::StrCat(wanted - registered, " of ", wanted,
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
    if (SteadyNow() > deadline_) {
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
  const FoundMembers before_;
  LocalCluster cluster_;
  bool is_finished_ = false;
};

// The members of DIR's cluster, where some of them are gone or more workers are
// wanted; none where there is no cluster.
absl::StatusOr<FoundMembers> FindMembers(const LocalClusterOptions& options) {
  const std::string& dir = options.dir;
  ASSIGN_OR_RETURN(const std::vector<ClusterMember> members,
                   ReadClusterFile(dir));
  FoundMembers found;
  for (const ClusterMember& member : members) {
    (IsRunning(member.process) ? found.running : found.gone).push_back(member);
  }
  if (found.running.empty()) {
    const absl::StatusOr<Endpoints> endpoints = ReadEndpoints(dir);
    if (!endpoints.ok()) return FoundMembers();
    return absl::AlreadyExistsError(absl::StrCat(
        "a scheduler that troupe up did not start already lives in ", dir, " (",
        endpoints->grpc, ")"));
  }
  const std::vector<ClusterMember>& running = found.running;
  const int workers = CountWorkers(running);
  if (found.LacksScheduler() && !options.end_with_us) {
    if (!running[0].scheduler.empty()) return found;
    return absl::FailedPreconditionError(absl::StrCat(
        "of the cluster in ", dir, " ", workers, " workers live, but not the ",
        "scheduler, and where they look for it is not known; stop them with: ",
        DownCommand(dir)));
  }
  if (workers < options.workers && !options.end_with_us) return found;
  return absl::AlreadyExistsError(absl::StrCat(
      "a cluster already lives in ", dir, " (",
      found.LacksScheduler() ? "its scheduler is gone, "
                             : absl::StrCat("its scheduler is process ",
                                            running[0].process.pid, ", "),
      workers, workers == 1 ? " worker runs" : " workers run",
      "); stop it with: ", DownCommand(dir)));
}

// Two that start the same members would be in each other's way.
absl::StatusOr<FileLock> AwaitTurn(const LocalClusterOptions& options,
                                   const std::function<bool()>& keep_going) {
  const std::string path = fs::path(options.dir) / "up.lock";
  const absl::Time deadline = SteadyNow() + options.start;
  while (true) {
    absl::StatusOr<FileLock> lock = FileLock::Take(path, ThisProcessName());
    if (!absl::IsFailedPrecondition(lock.status())) return lock;
    if (!keep_going()) return absl::CancelledError("interrupted");
    if (SteadyNow() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "waited ", absl::FormatDuration(options.start), " for ",
          lock.status().message(), ", which starts the cluster in ",
          options.dir, "; see what it waits for, or end it"));
    }
    absl::SleepFor(kPoll);
  }
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
  ASSIGN_OR_RETURN(const FileLock turn, AwaitTurn(options, keep_going));
  // Those of a cluster that runs are renewed in time, too.
  if (!options.insecure) {
    RETURN_IF_ERROR(EnsureClusterTrust(options.dir, absl::Now()));
  }
  ASSIGN_OR_RETURN(FoundMembers found, FindMembers(options));
  const bool has_scheduler = !found.IsNew() && !found.LacksScheduler();
  Starting starting(options, keep_going, std::move(found));
  RETURN_IF_ERROR(has_scheduler ? starting.FindScheduler()
                                : starting.StartScheduler());
  RETURN_IF_ERROR(starting.StartWorkers());
  return starting.Finish();
}

absl::StatusOr<StoppedCluster> StopLocalCluster(
    const EndMembersOptions& options) {
  const std::string& dir = options.dir;
  ASSIGN_OR_RETURN(const std::vector<ClusterMember> members,
                   ReadClusterFile(dir));
  if (members.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no cluster in ", dir, " (there is no ", kClusterFile, ")"));
  }
  const int running = std::count_if(
      members.begin(), members.end(),
      [](const ClusterMember& member) { return IsRunning(member.process); });
  const EndedMembers ended = EndMembers(members, options);
  const absl::Status forgotten = ForgetMembers(dir, members, ended.left);
  RETURN_IF_ERROR(ended.complaint);
  RETURN_IF_ERROR(forgotten);
  return StoppedCluster{.stopped = running, .killed = ended.killed};
}

}  // namespace troupe
