#include <filesystem>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/insecure_line.h"
#include "clients/cli/interrupt.h"
#include "clients/cli/local/local_cluster.h"
#include "clients/cli/local/process.h"
#include "clients/cli/local/say_waiting.h"
#include "clients/cli/share_flags.h"
#include "clients/cpp/cluster_commands.h"
#include "proto/base/status.h"
#include "proto/trust/cluster_trust.h"
#include "proto/trust/private_file.h"
#include "storage/disk/roots.h"

namespace troupe {
namespace {

class Up final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Integer("--workers!", workers_, {1, 256},
                  {.value = "N", .text = "How many workers"});
    flags.Text("--dir", dir_,
               {.value = "DIR",
                .text = "Where the cluster keeps state and logs [TROUPE_DIR]"});
    share_.Declare(flags);
    flags.Texts("--root", roots_,
                {.value = "NAME=DIR",
                 .text = "Jobs read and write below DIR, as NAME:path, and "
                         "nowhere else (may be given several times)"});
    flags.Switch("--gpus", gpus_, "A GPU for each worker, cuda:0 on");
    flags.Switch("--insecure", insecure_,
                 "No certificates, no TLS: anyone who can run a program on "
                 "this machine may do everything");
    flags.Switch("--foreground", foreground_,
                 "Stay; Ctrl-C brings the cluster down");
  }

  absl::Status Run(Console& console) override {
    Interrupt interrupt;
    if (dir_.empty()) dir_ = console.environment_dir;
    if (dir_.empty()) {
      return absl::InvalidArgumentError(
          "usage: --dir is required (or TROUPE_DIR)");
    }
    // The daemons keep it for longer than the current folder means anything.
    std::error_code error;
    dir_ = std::filesystem::absolute(dir_, error).lexically_normal().string();
    ASSIGN_OR_RETURN(WorkerShare share, share_.Share());
    share.gpu = gpus_;
    ASSIGN_OR_RETURN(share.roots, AbsoluteRoots());
    console.err << "starting a cluster of " << workers_
                << (workers_ == 1 ? " worker" : " workers")
                << "; the first time, workers measure the machine (seconds)"
                << std::endl;
    ASSIGN_OR_RETURN(const LocalCluster cluster,
                     StartLocalCluster({.dir = dir_,
                                        .workers = static_cast<int>(workers_),
                                        .share = share,
                                        .end_with_us = foreground_,
                                        .insecure = insecure_,
                                        .search = ThisProgram()},
                                       [&] { return !interrupt.Arrived(); }));
    Print(cluster, console);
    if (!foreground_) return absl::OkStatus();
    return Stay(cluster, interrupt, console);
  }

 private:
  // As the daemons, which run elsewhere, understand them.
  absl::StatusOr<std::vector<std::string>> AbsoluteRoots() const {
    // Says what is wrong with them before anything is started.
    RETURN_IF_ERROR(Roots::Install(roots_).status());
    std::vector<std::string> roots;
    for (const std::string& root : roots_) {
      const size_t equals = root.find('=');
      std::error_code error;
      roots.push_back(
          absl::StrCat(root.substr(0, equals + 1),
                       std::filesystem::absolute(root.substr(equals + 1), error)
                           .lexically_normal()
                           .string()));
    }
    return roots;
  }

  // ", 2 threads each"
  static std::string ThreadsText(const LocalCluster& cluster) {
    std::set<int> threads;
    for (const ClusterMember& member : cluster.members) {
      if (member.share.threads > 0) threads.insert(member.share.threads);
    }
    if (threads.empty()) return "";
    const int most = *threads.rbegin();
    return absl::StrCat(
        ", ", threads.size() > 1 ? absl::StrCat(*threads.begin(), " to ") : "",
        most, most == 1 ? " thread each" : " threads each");
  }

  // With the token that it wants; the bare address of one that has none.
  std::string PageLink(const LocalCluster& cluster) const {
    const absl::StatusOr<std::string> token =
        ReadPrivateFile(PageTokenFile(dir_));
    if (!token.ok()) return cluster.endpoints.http;
    return absl::StrCat(cluster.endpoints.http,
                        "/?token=", absl::StripAsciiWhitespace(*token));
  }

  void Print(const LocalCluster& cluster, Console& console) const {
    console.out << "scheduler    " << cluster.endpoints.grpc << "\n"
                << "status page  " << PageLink(cluster) << "\n"
                << "workers      " << CountWorkers(cluster.members)
                << ThreadsText(cluster) << "\n"
                << (cluster.started.size() == cluster.members.size()
                        ? ""
                        : absl::StrCat("started      ",
                                       absl::StrJoin(cluster.started, ", "),
                                       "; the others went on\n"))
                << (cluster.endpoints.trust.insecure > 0
                        ? InsecureLine(console) + "\n"
                        : "")
                << "logs         " << dir_ << "/logs\n"
                << (foreground_ ? "Ctrl-C brings it down"
                                : "stop it with: " + DownCommand(dir_))
                << std::endl;
  }

  // Until Ctrl-C, or until the scheduler ends.
  absl::Status Stay(const LocalCluster& cluster, Interrupt& interrupt,
                    Console& console) const {
    const ProcessId scheduler = cluster.members.front().process;
    std::set<std::string> gone;
    while (!interrupt.Arrived() && IsRunning(scheduler)) {
      for (const ClusterMember& member : cluster.members) {
        Reap(member.process);
        if (IsRunning(member.process) || !gone.insert(member.name).second) {
          continue;
        }
        console.out << member.name << " ended; its log is " << dir_ << "/logs/"
                    << member.name << ".log; start it again with: "
                    << UpCommand(dir_, static_cast<int>(workers_)) << std::endl;
      }
      absl::SleepFor(absl::Milliseconds(100));
    }
    const bool was_asked = interrupt.Arrived();
    console.out << (was_asked ? "stopping" : "the scheduler ended; stopping")
                << std::endl;
    interrupt.Forget();
    const absl::Status stopped =
        StopLocalCluster({.news = SayWaiting(console.err, "Ctrl-C again"),
                          .hurried = [&] { return interrupt.Arrived(); },
                          .dir = dir_})
            .status();
    // `troupe down` may have been quicker.
    if (!stopped.ok() && !absl::IsNotFound(stopped)) return stopped;
    if (was_asked) return absl::OkStatus();
    return absl::AbortedError(
        absl::StrCat("the scheduler ended; its log is in ", dir_, "/logs"));
  }

  int64_t workers_ = 0;
  std::string dir_;
  std::vector<std::string> roots_;
  ShareFlags share_;
  bool gpus_ = false;
  bool insecure_ = false;
  bool foreground_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeUp() { return std::make_unique<Up>(); }

}  // namespace troupe
