// What Prometheus scrapes: counters and a histogram that grow with what happens
// (this is a sink of actions), and gauges that are read off the cluster when
// somebody asks.
//
//   troupe_workers{state}            troupe_jobs{state}
//   troupe_worker_memory_bytes{worker}
//   troupe_job_step{job,name}        and _loss, _grad_norm, _learning_rate,
//                                    _tokens_per_second, _mfu of running jobs,
//                                    _loss_scale, _skipped_steps of fp16 ones,
//                                    _busiest_expert_over_mean, _dropped_share,
//                                    _balance_loss, _router_z_loss,
//                                    _router_entropy of mixtures of experts,
//                                    _mtp_loss of models with modules
//   troupe_steps_total               troupe_step_seconds (histogram)
//   troupe_rpcs_total{rpc,code}      troupe_uptime_seconds
//
// Thread-safe.
#ifndef TROUPE_SCHEDULER_STATUS_METRICS_H_
#define TROUPE_SCHEDULER_STATUS_METRICS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/host.h"

namespace troupe {

class Metrics final : public ActionSink {
 public:
  Metrics();
  ~Metrics() override;

  // Counts finished steps.
  void Carry(const Actions& actions) override;
  void CountRpc(absl::string_view rpc, const absl::Status& status);

  // Prometheus' text format.
  std::string Text(const Cluster& cluster, absl::Duration uptime) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STATUS_METRICS_H_
