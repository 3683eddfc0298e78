#include <map>
#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "clients/cli/cluster_flags.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/view/format.h"
#include "clients/cli/view/message_json.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

std::string DeviceBudget(const WorkerDescription& worker) {
  for (const TierBudget& budget : worker.budgets()) {
    if (budget.tier() == DEVICE) return BytesText(budget.bytes());
  }
  return "-";
}

// "cpu", "cuda:0 NVIDIA H200".
std::string DeviceText(const WorkerDescription& worker) {
  if (!worker.has_gpu()) return worker.device();
  return absl::StrCat(worker.device(), " ", worker.gpu().name());
}

// IDLE, BUSY; "IDLE, aside" where it gets no rank.
std::string StateText(const WorkerStatus& worker) {
  return absl::StrCat(WorkerStatus_State_Name(worker.state()),
                      worker.set_aside().empty() ? "" : ", aside");
}

// What it does, and why it gets nothing.
std::string ReasonText(const WorkerStatus& worker) {
  const bool both = !worker.reason().empty() && !worker.set_aside().empty();
  return absl::StrCat(worker.reason(), both ? "; " : "", worker.set_aside());
}

// To other hosts.
using LinksByWorker = std::map<std::string, TopologyLink>;
LinksByWorker LinksOf(const Topology& topology) {
  LinksByWorker links;
  for (const HostTopology& host : topology.hosts()) {
    for (const DeviceLinks& device : host.devices()) {
      links[device.worker()] = device.between();
    }
  }
  return links;
}

// "1.1 GB/s assumed"; "-" of one that is gone.
std::string NetworkText(const LinksByWorker& links,
                        const WorkerDescription& worker) {
  const auto link = links.find(worker.name());
  return link == links.end() ? "-" : ShortLinkText(link->second);
}

class Workers final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("--json", json_, "Print JSON");
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    ASSIGN_OR_RETURN(const auto client, cluster_.Connect(console));
    ASSIGN_OR_RETURN(const ListWorkersResponse list, client->Workers());
    if (json_) {
      console.out << MessageJsonText(list);
      return absl::OkStatus();
    }
    Table table({"ID>", "NAME", "STATE", "JOB>", "RANK>", "DEVICE", "THREADS>",
                 "MEMORY>", "BUDGET>", "NETWORK>", "PID>", "FAILED>", "HEARD",
                 "REASON"});
    const LinksByWorker links = LinksOf(list.topology());
    for (const WorkerStatus& worker : list.workers()) {
      const bool busy = worker.job() > 0;
      table.Add(
          {absl::StrCat(worker.id()), worker.description().name(),
           StateText(worker), busy ? absl::StrCat(worker.job()) : "-",
           busy ? absl::StrCat(worker.rank()) : "-",
           DeviceText(worker.description()),
           absl::StrCat(worker.description().threads()),
           BytesText(worker.memory_bytes()), DeviceBudget(worker.description()),
           NetworkText(links, worker.description()), absl::StrCat(worker.pid()),
           absl::StrCat(worker.local_failures()),
           TimeText(worker.last_heard_unix_ms()), ReasonText(worker)});
    }
    console.out << table.Text();
    return absl::OkStatus();
  }

 private:
  bool json_ = false;
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakeWorkers() { return std::make_unique<Workers>(); }

}  // namespace troupe
