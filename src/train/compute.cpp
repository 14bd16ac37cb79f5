#include "train/compute.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "comm/agree.h"
#include "comm/staged.h"
#include "core/process.h"
#include "device/gpu/driver.h"
#include "device/gpu/workspace.h"

namespace zt {

namespace {

// What a rank tells the others of its GPU.
struct Offer {
  std::string problem;  // empty: usable
  std::string place;    // machine and bus: who shares a GPU with whom
  std::string kind;     // name and capability
  std::string no_nccl;  // why NCCL cannot be used, or empty
  int devices = 0;      // that the rank sees

  std::string text() const {
    return problem + '\n' + place + '\n' + kind + '\n' + no_nccl + '\n' + std::to_string(devices);
  }
  static Offer from(const std::string& text) {
    std::vector<std::string> lines(1);
    for (const char c : text) {
      if (c == '\n') {
        lines.emplace_back();
      } else {
        lines.back() += c;
      }
    }
    lines.resize(5);
    return {lines[0], lines[1], lines[2], lines[3], std::stoi(lines[4])};
  }
};

std::string on_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// Looks for a GPU for the rank that is number `index_on_machine` here.
Offer look(int index_on_machine, ComputeChoice& choice) {
  Offer offer;
  if (!gpu_driver_is_installed()) {
    offer.problem = "there is no NVIDIA driver on this machine (libcuda.so.1 is not installed)";
    return offer;
  }
  GpuBackend* const backend = open_gpu_backend(&offer.problem);
  offer.problem = on_one_line(offer.problem);
  if (backend == nullptr) return offer;
  const GpuSurvey survey = backend->survey();
  offer.problem = on_one_line(survey.problem);
  if (!offer.problem.empty()) return offer;
  choice.backend = backend;
  offer.devices = static_cast<int>(survey.devices.size());
  choice.index = index_on_machine % offer.devices;
  offer.problem = on_one_line(backend->try_out(choice.index, &choice.gpu));
  if (!offer.problem.empty()) return offer;
  offer.place = machine_name() + " " + choice.gpu.bus;
  offer.kind = choice.gpu.name + ", sm_" + std::to_string(choice.gpu.capability);
  offer.no_nccl = on_one_line(survey.nccl_problem);
  return offer;
}

std::string list_of(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i == 8 && ranks.size() > 9) return text + " and " + std::to_string(ranks.size() - i) + " more";
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

// Why GPUs cannot be used: what the ranks say, each reason once.
std::string reasons(const std::vector<Offer>& offers) {
  std::map<std::string, std::vector<int>> by_reason;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    if (!offers[rank].problem.empty()) by_reason[offers[rank].problem].push_back(static_cast<int>(rank));
  }
  std::string text;
  for (const auto& [reason, ranks] : by_reason) {
    if (!text.empty()) text += "; ";
    text += (ranks.size() == offers.size() ? "" : list_of(ranks) + ": ") + reason;
  }
  return text;
}

// How device buffers of these ranks are to be exchanged; the notice says why it is not NCCL.
std::string device_communicator(const std::vector<Offer>& offers, const std::string& asked, Communicator& host,
                                std::vector<std::string>& notices) {
  std::map<std::string, int> ranks_of_gpu;
  for (const Offer& offer : offers) ++ranks_of_gpu[offer.place];
  const bool all_have_their_own = ranks_of_gpu.size() == offers.size();
  const bool limited = std::getenv("CUDA_VISIBLE_DEVICES") != nullptr;
  const std::string counts = std::to_string(offers.size()) + " ranks, but only " + std::to_string(ranks_of_gpu.size()) +
                             " GPU(s)" + (limited ? " (CUDA_VISIBLE_DEVICES is set)" : "");
  std::string no_nccl;
  for (const Offer& offer : offers) {
    if (no_nccl.empty()) no_nccl = offer.no_nccl;
  }
  if (asked == "shared" || asked == "mpi") {
    fail_together<UserError>(host, "device.communicator: \"" + asked +
                                       "\" is how CPUs exchange data; on GPUs use \"nccl\", or \"staged\" (through the "
                                       "memory of the host), or leave it \"auto\"; or set device.type to \"cpu\"");
  }
  if (asked == "nccl") {
    if (!all_have_their_own && std::getenv("ZEROTRAIN_ALLOW_SHARED_GPU") == nullptr) {
      fail_together<UserError>(
          host, "device.communicator: \"nccl\" needs a GPU for each rank of a machine; there are " + counts +
                    ". Start fewer ranks, or use \"staged\" to let ranks share a GPU");
    }
    if (!no_nccl.empty()) {
      fail_together<UserError>(
          host, "device.communicator: \"nccl\" cannot be used: " + no_nccl + ". Install NCCL, or use \"staged\"");
    }
    return "nccl";
  }
  if (asked == "staged" || offers.size() == 1) return "staged";
  if (!all_have_their_own) {
    notices.push_back("device.communicator: ranks share GPUs, there are " + counts +
                      ": their data go through the memory of the host, which is slow");
    return "staged";
  }
  if (!no_nccl.empty()) {
    notices.push_back("device.communicator: data go through the memory of the host, which is slow: " + no_nccl);
    return "staged";
  }
  return "nccl";
}

}  // namespace

std::string ComputeChoice::instruction_set(cpu::InstructionLevel level) const {
  return on_gpu() ? "sm_" + std::to_string(gpu.capability) : std::string(cpu::name_of(level));
}

ComputeChoice choose_compute(Communicator& host, const DeviceSettings& settings, const Neighbours& neighbours) {
  ComputeChoice choice;
  choice.communicator = settings.communicator == "mpi" ? "mpi" : "shared";
  if (settings.type == "cpu") return choice;

  const Offer mine = look(neighbours.index_on_machine, choice);
  std::vector<Offer> offers;
  for (const std::string& text : host.all_gather_strings(mine.text())) offers.push_back(Offer::from(text));
  const auto usable =
      std::count_if(offers.begin(), offers.end(), [](const Offer& offer) { return offer.problem.empty(); });
  const auto all = static_cast<std::ptrdiff_t>(offers.size());
  if (usable == all) {
    choice.type = "cuda";
    choice.communicator = device_communicator(offers, settings.communicator, host, choice.notices);
    choice.sharing = static_cast<int>(
        std::count_if(offers.begin(), offers.end(), [&](const Offer& offer) { return offer.place == mine.place; }));
    std::set<std::string> kinds;
    for (const Offer& offer : offers) kinds.insert(offer.kind);
    if (kinds.size() > 1) {
      std::string names;
      for (const std::string& kind : kinds) names += (names.empty() ? "" : "; ") + kind;
      choice.notices.push_back("device: ranks compute on different kinds of GPU (" + names +
                               "): bits of products may depend on which rank computes them");
    }
    return choice;
  }
  choice.backend = nullptr;
  if (settings.type == "cuda") {
    fail_together<UserError>(host, "device.type: \"cuda\" cannot be used: " + reasons(offers) +
                                       ". Use \"cpu\", or \"auto\", which takes GPUs where all ranks have one");
  }
  if (usable > 0) {
    fail_together<UserError>(host, "device.type: \"auto\" needs all ranks to have a GPU, or none; some have none: " +
                                       reasons(offers) + ". Mend that, or set device.type to \"cpu\"");
  }
  if (settings.communicator == "nccl" || settings.communicator == "staged") {
    fail_together<UserError>(host, "device.communicator: \"" + settings.communicator +
                                       "\" is for GPUs, and none can be used: " + reasons(offers) +
                                       ". Use \"shared\" or \"mpi\", or leave it \"auto\"");
  }
  // Where there is no driver nobody expects a GPU.
  if (gpu_driver_is_installed()) choice.notices.push_back("device.type: \"auto\" is the CPU: " + reasons(offers));
  return choice;
}

ComputeChoice plan_compute(const DeviceSettings& settings, int ranks) {
  ComputeChoice choice;
  choice.communicator = settings.communicator == "mpi" ? "mpi" : "shared";
  if (settings.type == "auto") {
    if (!look(0, choice).problem.empty()) choice.backend = nullptr;
    if (choice.on_gpu()) choice.type = "cuda";
  } else {
    choice.type = settings.type;
  }
  if (choice.type == "cuda") {
    const bool staged = settings.communicator == "staged" || (settings.communicator == "auto" && ranks == 1);
    choice.communicator = staged ? "staged" : "nccl";
  }
  return choice;
}

int planned_ranks_on_node(const ComputeChoice& choice, const Communicator& host) {
  if (choice.type != "cuda") return host.ranks_on_node();
  return choice.communicator == "nccl" ? 1 : host.size();
}

ScratchBytes scratch_of_device(const DeviceSettings& settings) {
  if (settings.type == "cuda")
    return [](const std::vector<Operation>& operations) { return gpu::workspace_of(operations); };
  return [threads = std::max(1, settings.threads)](const std::vector<Operation>& operations) {
    cpu::WorkspaceNeed maxima;
    for (const Operation& operation : operations) maxima = cpu::larger_of(maxima, cpu::workspace_need(operation));
    return cpu::workspace_bytes(maxima, threads);
  };
}

Compute::Compute(const ComputeChoice& choice, const Settings& settings, Communicator& host,
                 const std::vector<Operation>& operations, const cpu::CpuDeviceOptions* cpu_options)
    : host_(host) {
  all_or_none(host, [&] {
    if (choice.on_gpu()) {
      device_ = choice.backend->open(choice.index, {settings.device.tf32, settings.device.gelu_epilogue});
    } else {
      device_ = std::make_unique<cpu::CpuDevice>(settings.device.threads, cpu_options);
    }
    for (const Operation& operation : operations) device_->prepare(operation);
    device_->reserve_workspace();
  });
  if (!choice.on_gpu()) return;
  if (choice.communicator == "nccl") {
    own_communicator_ = choice.backend->nccl(host, *device_, settings.training.fast_communication);
  } else {
    own_communicator_ = std::make_unique<StagedCommunicator>(host);
  }
}

}  // namespace zt
