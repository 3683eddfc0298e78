#include "ops/cuda/facts.h"

#include <cuda_runtime_api.h>

#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "ops/cuda/attention_limits.h"
#include "ops/cuda/cudnn_library.h"
#include "ops/cuda/status.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

std::string UuidText(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    absl::StrAppend(
        &text, dash ? "-" : "",
        absl::Hex(static_cast<unsigned char>(uuid.bytes[i]), absl::kZeroPad2));
  }
  return text;
}

// The first line of a file of the kernel's; empty where it cannot be read.
std::string Line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string LinkText(int ordinal) {
  char bus[32] = "";
  if (cudaDeviceGetPCIBusId(bus, sizeof(bus), ordinal) != cudaSuccess) {
    return "";
  }
  const std::string folder =
      absl::StrCat("/sys/bus/pci/devices/", absl::AsciiStrToLower(bus));
  const std::string speed = Line(folder + "/current_link_speed");
  const std::string width = Line(folder + "/current_link_width");
  if (speed.empty() || width.empty()) return "";
  return absl::StrCat("PCIe ", absl::StripSuffix(speed, " PCIe"), " x", width);
}

std::string CudnnVersion() {
  const absl::StatusOr<cuda::CudnnLibrary> library = cuda::CudnnLibrary::Load();
  return library.ok() ? library->VersionText() : "";
}

}  // namespace

absl::StatusOr<GpuFacts> ReadGpuFacts(int ordinal) {
  RETURN_IF_ERROR(ToStatus(cudaSetDevice(ordinal), "cudaSetDevice"));
  cudaDeviceProp properties{};
  RETURN_IF_ERROR(ToStatus(cudaGetDeviceProperties(&properties, ordinal),
                           "cudaGetDeviceProperties"));
  size_t free = 0, total = 0;
  RETURN_IF_ERROR(ToStatus(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"));
  GpuFacts facts = {.name = properties.name,
                    .uuid = UuidText(properties.uuid),
                    .memory_bytes = static_cast<int64_t>(total),
                    .free_bytes = static_cast<int64_t>(free),
                    .head_dim_max_f32 = cuda::AttentionHeadDimMax(
                        DType::kF32, properties.sharedMemPerBlockOptin),
                    .head_dim_max_narrow = cuda::AttentionHeadDimMax(
                        DType::kBF16, properties.sharedMemPerBlockOptin),
                    .cudnn_version = CudnnVersion(),
                    .link = LinkText(ordinal)};
  RETURN_IF_ERROR(ToStatus(cudaDriverGetVersion(&facts.driver_version),
                           "cudaDriverGetVersion"));
  return facts;
}

absl::StatusOr<int64_t> FreeGpuBytes(int ordinal) {
  RETURN_IF_ERROR(ToStatus(cudaSetDevice(ordinal), "cudaSetDevice"));
  size_t free = 0, total = 0;
  RETURN_IF_ERROR(ToStatus(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"));
  return static_cast<int64_t>(free);
}

}  // namespace troupe
