#include "worker/doctor/accelerators.h"

#include <dlfcn.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/cuda/device.h"

namespace troupe {
namespace {

constexpr char kNotUsed[] =
    "GPUs are not used by this build; build with --config=cuda";

std::string AdviceFor(bool used) { return used ? "" : kNotUsed; }

// A shared library, loaded until the process ends: drivers do not like to be
// unloaded.
class Library {
 public:
  explicit Library(const char* name)
      : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) missing_ = dlerror();
  }
  const std::string& missing() const { return missing_; }
  // The function of that name; null where there is none.
  template <typename Function>
  Function* Find(const char* name) const {
    if (handle_ == nullptr) return nullptr;
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  void* const handle_;
  std::string missing_;
};

// Of CUDA's driver API, whose results are 0 for success.
using Init = int(unsigned flags);
using GetVersion = int(int* version);
using GetCount = int(int* count);
using GetDevice = int(int* device, int ordinal);
using GetName = int(char* name, int bytes, int device);
using GetErrorName = int(int error, const char** name);

std::string ErrorText(const Library& cuda, int error) {
  const char* name = nullptr;
  auto* const get_name = cuda.Find<GetErrorName>("cuGetErrorName");
  if (get_name == nullptr || get_name(error, &name) != 0 || name == nullptr) {
    return absl::StrCat("error ", error);
  }
  return name;
}

CudaDriver AskCuda(const Library& cuda) {
  CudaDriver driver = {.missing = cuda.missing(),
                       .has_device_file = access("/dev/nvidia0", F_OK) == 0,
                       .used = BuiltWithCuda()};
  if (!driver.missing.empty()) return driver;
  auto* const init = cuda.Find<Init>("cuInit");
  auto* const get_version = cuda.Find<GetVersion>("cuDriverGetVersion");
  auto* const get_count = cuda.Find<GetCount>("cuDeviceGetCount");
  auto* const get_device = cuda.Find<GetDevice>("cuDeviceGet");
  auto* const get_name = cuda.Find<GetName>("cuDeviceGetName");
  if (init == nullptr || get_version == nullptr || get_count == nullptr ||
      get_device == nullptr || get_name == nullptr) {
    driver.error = "libcuda.so.1 lacks functions of the driver API";
    return driver;
  }
  int count = 0;
  for (const int error :
       {init(0), get_version(&driver.version), get_count(&count)}) {
    if (error == 0) continue;
    driver.error = ErrorText(cuda, error);
    return driver;
  }
  for (int i = 0; i < count; ++i) {
    const absl::StatusOr<GpuFacts> facts = ReadGpuFacts(i);
    if (facts.ok()) {
      driver.gpus.push_back(GpuText(*facts));
      continue;
    }
    int device = 0;
    char name[256] = "";
    const bool known = get_device(&device, i) == 0 &&
                       get_name(name, sizeof(name), device) == 0;
    driver.gpus.push_back(known ? name : "?");
  }
  return driver;
}

}  // namespace

Finding JudgeCuda(const CudaDriver& driver) {
  const std::string device_file =
      driver.has_device_file ? "/dev/nvidia0 is there" : "/dev/nvidia0 missing";
  if (!driver.missing.empty()) {
    return {.state = FindingState::kNone,
            .text = absl::StrCat("no driver (", device_file, "; ",
                                 driver.missing, ")"),
            .advice = driver.used ? "workers here compute on the CPU"
                                  : AdviceFor(driver.used)};
  }
  if (!driver.error.empty()) {
    return {.state = FindingState::kWarn,
            .text = absl::StrCat("the driver does not start: ", driver.error,
                                 " (", device_file, ")"),
            .advice = absl::StrCat(
                AdviceFor(driver.used), driver.used ? "" : "; ",
                "see nvidia-smi, and in a container whether it was given the "
                "GPUs")};
  }
  const std::string version =
      absl::StrCat(driver.version / 1000, ".", driver.version % 1000 / 10);
  if (driver.gpus.empty()) {
    return {.state = FindingState::kNone,
            .text = absl::StrCat("driver for CUDA ", version, ", no GPU"),
            .advice = AdviceFor(driver.used)};
  }
  return {.text = absl::StrCat("driver for CUDA ", version, ", ",
                               driver.gpus.size(),
                               driver.gpus.size() == 1 ? " GPU (" : " GPUs (",
                               absl::StrJoin(driver.gpus, "; "), ")"),
          .advice = AdviceFor(driver.used)};
}

std::string GpuText(const GpuFacts& facts) {
  return absl::StrCat(facts.name, ", ", MemoryText(facts.memory_bytes), ", ",
                      facts.uuid, facts.link.empty() ? "" : ", ", facts.link);
}

std::string NcclVersionText(int version) {
  const int unit = version < 10000 ? 1000 : 10000;
  return absl::StrCat(version / unit, ".", version % unit / 100, ".",
                      version % 100);
}

Finding JudgeNccl(const GpuLibrary& library) {
  if (!library.missing.empty()) {
    return {.state = FindingState::kNone,
            .text = absl::StrCat("no library (", library.missing, ")"),
            .advice =
                "workers on CPUs communicate over shared memory and sockets "
                "and do without"};
  }
  return {.text = absl::StrCat("NCCL ", NcclVersionText(library.version)),
          .advice = AdviceFor(library.used)};
}

Finding JudgeCudnn(const GpuLibrary& library) {
  if (!library.missing.empty()) {
    return {.state = FindingState::kNone,
            .text = absl::StrCat("no library (", library.missing, ")"),
            .advice = "Troupe has kernels of its own and does without"};
  }
  return {.text = absl::StrCat("cuDNN ", library.version / 10000, ".",
                               library.version % 10000 / 100, ".",
                               library.version % 100)};
}

Finding CheckCuda() { return JudgeCuda(AskCuda(Library("libcuda.so.1"))); }

Finding CheckCudnn() {
  const Library cudnn("libcudnn.so.9");
  GpuLibrary library = {.missing = cudnn.missing()};
  if (library.missing.empty()) {
    auto* const get_version = cudnn.Find<size_t()>("cudnnGetVersion");
    if (get_version == nullptr) {
      library.missing = "libcudnn.so.9 does not say its version";
    } else {
      library.version = static_cast<int>(get_version());
    }
  }
  return JudgeCudnn(library);
}

Finding CheckNccl() {
  const Library nccl("libnccl.so.2");
  GpuLibrary library = {.missing = nccl.missing(), .used = BuiltWithCuda()};
  if (library.missing.empty()) {
    auto* const get_version = nccl.Find<GetVersion>("ncclGetVersion");
    if (get_version == nullptr || get_version(&library.version) != 0) {
      library.missing = "libnccl.so.2 does not say its version";
    }
  }
  return JudgeNccl(library);
}

}  // namespace troupe
