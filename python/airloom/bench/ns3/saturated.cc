// n saturated IEEE 802.11a stations at 54 Mbit/s on a circle of 5 m around their receiver, in ns-3.
//
// Usage: saturated STATIONS SECONDS. Prints processor seconds for each simulated second, and frames
// delivered in each, after a warm-up of 0.2 s. The same scene as Airloom's own example medium_speed.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/wifi-module.h"

using namespace ns3;

namespace {

constexpr uint32_t kPayload = 1470;
constexpr uint16_t kPort = 9;

uint64_t g_received = 0;

void Count(Ptr<Socket> socket)
{
    while (socket->Recv())
    {
        ++g_received;
    }
}

// Offers more than a station can send: 54 Mbit/s of 802.11a carry less than 2800 such frames a second.
void Offer(Ptr<Socket> socket, Time gap)
{
    socket->Send(Create<Packet>(kPayload));
    Simulator::Schedule(gap, &Offer, socket, gap);
}

double CpuSeconds()
{
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 3)
    {
        std::fprintf(stderr, "usage: saturated STATIONS SECONDS\n");
        return 2;
    }
    const uint32_t stations = uint32_t(std::atoi(argv[1]));
    const double seconds = std::atof(argv[2]);

    NodeContainer nodes;
    nodes.Create(stations + 1);

    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    channel.AddPropagationLoss("ns3::LogDistancePropagationLossModel");
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    phy.Set("ChannelSettings", StringValue("{36, 20, BAND_5GHZ, 0}"));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac", "QosSupported", BooleanValue(false));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211a);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode", StringValue("OfdmRate54Mbps"),
                                 "ControlMode", StringValue("OfdmRate24Mbps"));
    NetDeviceContainer devices = wifi.Install(phy, mac, nodes);

    auto places = CreateObject<ListPositionAllocator>();
    places->Add(Vector(0, 0, 0));
    for (uint32_t station = 0; station < stations; ++station)
    {
        const double angle = 2 * M_PI * station / stations;
        places->Add(Vector(5 * std::cos(angle), 5 * std::sin(angle), 0));
    }
    MobilityHelper mobility;
    mobility.SetPositionAllocator(places);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(nodes);

    InternetStackHelper internet;
    internet.Install(nodes);
    Ipv4AddressHelper address;
    address.SetBase("10.0.0.0", "255.255.255.0");
    address.Assign(devices);
    NeighborCacheHelper neighbours;
    neighbours.PopulateNeighborCache();

    auto sink = Socket::CreateSocket(nodes.Get(0), UdpSocketFactory::GetTypeId());
    sink->Bind(InetSocketAddress(Ipv4Address::GetAny(), kPort));
    sink->SetRecvCallback(MakeCallback(&Count));

    // Twice an equal share of what all can send together, so that every queue stays full.
    const Time gap = Seconds(double(stations) / (2 * 2800.0));
    for (uint32_t station = 1; station <= stations; ++station)
    {
        auto socket = Socket::CreateSocket(nodes.Get(station), UdpSocketFactory::GetTypeId());
        socket->Connect(InetSocketAddress(Ipv4Address("10.0.0.1"), kPort));
        Simulator::Schedule(MicroSeconds(10 * station), &Offer, socket, gap);
    }

    Simulator::Stop(Seconds(0.2));
    Simulator::Run();
    const double start = CpuSeconds();
    const uint64_t before = g_received;
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    std::printf("%.6f %.1f\n", (CpuSeconds() - start) / seconds, double(g_received - before) / seconds);
    Simulator::Destroy();
    return 0;
}
