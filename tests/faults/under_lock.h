// A cluster whose every event is marked as one under its host's lock
// (scheduler/cluster/host.h), so that what may not be done there fails.
#ifndef TROUPE_TESTS_FAULTS_UNDER_LOCK_H_
#define TROUPE_TESTS_FAULTS_UNDER_LOCK_H_

#include <memory>
#include <utility>

#include "proto/base/must_not_wait.h"
#include "scheduler/cluster/cluster.h"

namespace troupe {

class UnderLock {
 public:
  // Lives to the end of the expression.
  class Event {
   public:
    explicit Event(Cluster& cluster) : cluster_(cluster) {}
    Cluster* operator->() const { return &cluster_; }

   private:
    const MustNotWait held_;
    Cluster& cluster_;
  };

  UnderLock& operator=(std::unique_ptr<Cluster> cluster) {
    cluster_ = std::move(cluster);
    return *this;
  }
  Event operator->() const { return Event(*cluster_); }
  Cluster& operator*() const { return *cluster_; }

 private:
  std::unique_ptr<Cluster> cluster_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FAULTS_UNDER_LOCK_H_
