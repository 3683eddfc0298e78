#include "scheduler/daemon.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"
#include "proto/base/file_limit.h"
#include "proto/base/log.h"
#include "proto/base/process_state.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "proto/trust/certificate_end.h"
#include "proto/trust/cluster_trust.h"
#include "proto/trust/secret.h"
#include "scheduler/cluster/host.h"
#include "scheduler/published_address.h"
#include "scheduler/service/grpc_server.h"
#include "scheduler/service/plan_compiler.h"
#include "scheduler/status/json.h"
#include "scheduler/status/metrics.h"
#include "scheduler/status/status_server.h"
#include "scheduler/store/state_lock.h"
#include "scheduler/store/store.h"
#include "scheduler/store/store_writer.h"
#include "storage/disk/new_file.h"

namespace troupe {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(200);

// Hands actions to all that carry some of them out. The store comes first: what
// a message tells somebody is queued for the disk by then.
struct FanOut final : public ActionSink {
  void Carry(const Actions& actions) override {
    store->Add(actions);
    metrics->Carry(actions);
    grpc->Carry(actions);
  }
  StoreWriter* store = nullptr;
  Metrics* metrics = nullptr;
  GrpcServer* grpc = nullptr;
};

// Each worker and each client is a connection.
void AllowManyFiles(const Limits& limits) {
  constexpr int kClients = 256;  // and the store
  constexpr int kOthers = kClients + StatusServer::kConnectionsMax;
  const FileLimit files = RaiseFileLimit();
  if (files.left() >= limits.workers_max + kOthers) return;
  LogWarning(absl::StrCat(
      "this process may open ", files.max, " files, and each worker and each ",
      "client is one: about ", std::max<int64_t>(0, files.left() - kOthers),
      " workers can join; for more, ", kRaiseFileLimit));
}

std::vector<std::string> NamesOfThisHost(std::vector<std::string> names) {
  names.push_back(HostName());
  return names;
}

}  // namespace

// In the order of their making; they end in the reverse order.
struct SchedulerDaemon::Parts {
  Parts(const SchedulerDaemonOptions& options, std::unique_ptr<StateLock> held,
        std::unique_ptr<Store> opened, std::string page_token)
      : endpoints(absl::StrCat(options.state, "/endpoints.json")),
        lock(std::move(held)),
        store(std::move(opened)),
        writer(*store),
        cluster(options.limits, compiler),
        host(cluster, clock, sink),
        grpc(host, compiler,
             {.flush = [this](auto done) { writer.Flush(std::move(done)); },
              .told = [this](
                          absl::string_view rpc,
                          const absl::Status& s) { metrics.CountRpc(rpc, s); },
              .trust = options.trust,
              .unnamed_workers = options.unnamed_workers}),
        http(host, metrics,
             {.health = [this] { return writer.health(); },
              .token = std::move(page_token),
              .names = NamesOfThisHost(options.http_names),
              .trust = options.trust}),
        certificate(options.trust, PeerRole::kScheduler) {
    sink.store = &writer;
    sink.metrics = &metrics;
    sink.grpc = &grpc;
  }

  void Tick() {
    while (!stopping.WaitForNotificationWithTimeout(kTick)) {
      host.Apply([](Cluster& cluster, absl::Time now, Actions& actions) {
        cluster.Tick(now, actions);
      });
    }
  }

  int RunningJobs() const {
    return host.Read([](const Cluster& cluster, absl::Time) {
      const auto& jobs = cluster.jobs().all();
      return static_cast<int>(std::count_if(
          jobs.begin(), jobs.end(),
          [](const auto& job) { return job.second->run != nullptr; }));
    });
  }

  const std::string endpoints;
  const std::unique_ptr<StateLock> lock;
  const std::unique_ptr<Store> store;
  const RealClock clock;
  const PlanCompiler compiler;
  Metrics metrics;
  FanOut sink;
  StoreWriter writer;
  Cluster cluster;
  ClusterHost host;
  GrpcServer grpc;
  StatusServer http;
  const CertificateWatch certificate;
  SteadyNotification stopping;
  std::thread ticker;
};

SchedulerDaemon::SchedulerDaemon(std::unique_ptr<Parts> parts)
    : parts_(std::move(parts)) {}

absl::StatusOr<std::unique_ptr<SchedulerDaemon>> SchedulerDaemon::Start(
    const SchedulerDaemonOptions& given) {
  SchedulerDaemonOptions options = given;
  if (options.trust.insecure == 0 && options.trust.certificates.empty()) {
    options.trust.certificates =
        MemberDirectory(options.state, PeerRole::kScheduler);
  }
  AllowManyFiles(options.limits);
  ASSIGN_OR_RETURN(auto lock, StateLock::Take(options.state));
  ASSIGN_OR_RETURN(auto store, Store::Open(options.state));
  ASSIGN_OR_RETURN(std::string token,
                   EnsureSecretFile(PageTokenFile(options.state)));
  ASSIGN_OR_RETURN(LoadedJobs loaded, store->Load(options.limits));
  for (const std::string& damage : loaded.complaints) LogWarning(damage);
  const size_t remembered = loaded.jobs.size();
  auto daemon = std::unique_ptr<SchedulerDaemon>(
      new SchedulerDaemon(std::make_unique<Parts>(
          options, std::move(lock), std::move(store), std::move(token))));
  Parts& parts = *daemon->parts_;
  parts.host.Apply([&](Cluster& cluster, absl::Time now, Actions& actions) {
    cluster.RestoreId(parts.store->cluster_id());
    cluster.RestoreWorkers(std::move(loaded.workers));
    cluster.RestoreHostLinks(std::move(loaded.hosts), now);
    cluster.Restore(std::move(loaded.jobs), now, actions);
  });
  RETURN_IF_ERROR(parts.grpc.Start(options.listen));
  RETURN_IF_ERROR(parts.http.Start(options.http));
  parts.ticker = std::thread([&parts] { parts.Tick(); });
  const ProcessSpace space = ThisProcessSpace();
  // Readers poll for it.
  RETURN_IF_ERROR(ReplaceFile(
      parts.endpoints,
      absl::StrCat(
          "{\"grpc\": ", JsonString(daemon->grpc_address()),
          ", \"http\": ", JsonString(daemon->http_url()), ", \"security\": ",
          options.trust.insecure > 0 ? "\"none\"" : "\"tls\"", ", \"host\": ",
          JsonString(space.host), ", \"boot\": ", JsonString(space.boot),
          ", \"pids\": ", space.pids, ", \"pid\": ", getpid(),
          ", \"start_ticks\": ", Identify(getpid()).start_ticks, "}\n")));
  if (options.trust.insecure > 0) {
    LogWarning(
        "INSECURE: without certificates, anyone who reaches this scheduler "
        "may do everything (--insecure)");
  }
  LogInfo(absl::StrCat("serving on ", daemon->grpc_address(), ", status page ",
                       daemon->http_url(), ", ", remembered,
                       " jobs remembered in ", options.state,
                       " of the cluster ", parts.store->cluster_id()));
  return daemon;
}

SchedulerDaemon::~SchedulerDaemon() {
  if (parts_->ticker.joinable()) {
    unlink(parts_->endpoints.c_str());
    parts_->stopping.Notify();
    parts_->ticker.join();
  }
  parts_->http.Stop();
  parts_->grpc.Stop();
}

void SchedulerDaemon::EndJobs(const std::string& signal,
                              absl::FunctionRef<bool()> hurried) {
  parts_->host.Apply([&](Cluster& cluster, absl::Time now, Actions& actions) {
    cluster.Drain(
        absl::StrCat("the scheduler was asked to end (SIG", signal, ")"), now,
        actions);
  });
  const int running = parts_->RunningJobs();
  if (running == 0) return;
  LogInfo(absl::StrCat("saving and ending ", running,
                       " jobs; another signal does not wait for them"));
  while (parts_->RunningJobs() > 0 && !hurried()) {
  }
}

std::string SchedulerDaemon::grpc_address() const {
  return PublishedAddress(parts_->grpc.address(), AddressOfThisHost);
}

std::string SchedulerDaemon::http_url() const {
  return PublishedAddress(parts_->http.url(), AddressOfThisHost);
}

}  // namespace troupe
