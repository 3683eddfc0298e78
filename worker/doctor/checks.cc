#include "worker/doctor/checks.h"

#include "worker/doctor/accelerators.h"
#include "worker/doctor/calibration.h"
#include "worker/doctor/limits.h"
#include "worker/doctor/memory.h"
#include "worker/doctor/network.h"
#include "worker/doctor/processor.h"
#include "worker/doctor/storage.h"
#include "worker/doctor/tunnels.h"

namespace troupe {

std::vector<Check> AllChecks() {
  using Subject = CheckSubject;
  return {
      {"instruction set", [](const Subject&) { return CheckInstructionSet(); }},
      {"cores", [](const Subject&) { return CheckCores(); }},
      {"threads", [](const Subject&) { return CheckThreads(); }},
      {"memory", [](const Subject&) { return CheckMemory(); }},
      {"shared memory", [](const Subject&) { return CheckSharedMemory(); }},
      {"io_uring", [](const Subject&) { return CheckIoUring(); }},
      {"state folder",
       [](const Subject& s) { return CheckStateFolder(s.state_dir); }},
      {"nvme tier", [](const Subject& s) { return CheckNvme(s.nvme_dir); }},
      {"ports", [](const Subject& s) { return CheckPorts(s.port); }},
      {"host name", [](const Subject&) { return CheckHostName(); }},
      {"loopback", [](const Subject&) { return CheckLoopback(); }},
      {"tensor traffic", [](const Subject&) { return CheckTunnels(); }},
      {"file limit", [](const Subject&) { return CheckFileLimit(); }},
      {"lock limit", [](const Subject&) { return CheckLockLimit(); }},
      {"calibration", [](const Subject&) { return CheckCalibration(); }},
      {"CUDA", [](const Subject&) { return CheckCuda(); }},
      {"NCCL", [](const Subject&) { return CheckNccl(); }},
      {"cuDNN", [](const Subject&) { return CheckCudnn(); }},
  };
}

std::vector<Check> FastChecks() {
  using Subject = CheckSubject;
  return {
      {"roots",
       [](const Subject& s) { return CheckRoots(s.roots, s.written_roots); }},
      {"nvme tier",
       [](const Subject& s) { return CheckNvmeWritable(s.nvme_dir); }},
      {"shared memory",
       [](const Subject& s) {
         return s.shares_memory ? CheckSharedMemoryStays() : Finding();
       }},
      // Last: a driver that hangs hides nothing of the others.
      {"device",
       [](const Subject& s) {
         return s.device == nullptr ? Finding() : s.device();
       }},
  };
}

}  // namespace troupe
