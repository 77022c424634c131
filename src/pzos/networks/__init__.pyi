"""The public names of pzos.networks."""

from .assignment import (
    AboveGap as AboveGap,
    Assignment as Assignment,
    NegativeCycle as NegativeCycle,
    PathFlow as PathFlow,
)
from .city import generated_city as generated_city
from .demand import Demand as Demand, UserClass as UserClass
from .derivatives import FlowDerivative as FlowDerivative, model_prediction as model_prediction
from .gap import flow_imbalance as flow_imbalance, independent_gap as independent_gap
from .geo import write_geojson as write_geojson, write_geopackage as write_geopackage
from .gmns import read_gmns as read_gmns, write_gmns as write_gmns
from .latency import Latency as Latency
from .maps import draw_map as draw_map
from .network import Network as Network
from .objectives import TollReport as TollReport, toll_report as toll_report
from .omx import read_omx as read_omx, write_omx as write_omx
from .open_flows import OpenFlows as OpenFlows
from .osm import read_osm as read_osm
from .references import References as References
from .scenarios import with_elastic_demand as with_elastic_demand, with_time_slices as with_time_slices
from .search import TollSearch as TollSearch, best_uniform as best_uniform, optimise_tolls as optimise_tolls
from .street_map import write_map as write_map
from .tables import network_from_table as network_from_table
from .tariffs import Tariff as Tariff, area_links as area_links, cordon_links as cordon_links, tariff as tariff
from .tntp import (
    read_tntp as read_tntp,
    read_tntp_flow as read_tntp_flow,
    read_tntp_nodes as read_tntp_nodes,
    write_tntp as write_tntp,
    write_tntp_flow as write_tntp_flow,
)
from .tolls import (
    TollFollower as TollFollower,
    flow_caps as flow_caps,
    loss_caps as loss_caps,
    toll_problem as toll_problem,
    total_cap as total_cap,
    usual_cap as usual_cap,
)
